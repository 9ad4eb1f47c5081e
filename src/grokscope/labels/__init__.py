"""Wrong labels in tables of one's own: reading them, finding the wrong labels, and showing the worst."""
