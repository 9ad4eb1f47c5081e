"""What several claims measure, of networks and of diagrams."""
