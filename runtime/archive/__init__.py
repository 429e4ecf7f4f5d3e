"""The container: a zip file with the records of PyTorch's PT2 archive, and pt2wire's own beside them."""
