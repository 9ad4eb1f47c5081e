"""The paper's figures, one module each, its claims, and experiments beyond it."""
