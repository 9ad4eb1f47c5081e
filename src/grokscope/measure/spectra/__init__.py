"""How periodic neurons are, and which waves they are made of."""
