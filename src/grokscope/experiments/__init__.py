"""The figures of the paper, one small module each: its runs as specs, and draw(), from results to a picture."""
