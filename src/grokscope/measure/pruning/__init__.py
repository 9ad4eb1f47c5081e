"""Networks without some of their neurons."""
