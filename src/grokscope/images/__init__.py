"""Images with labels from IDX files, such as MNIST. `images.download` gets them, and is not imported here: it needs
modules of the network that nothing else does."""

from grokscope.images.files import DATA_DIRECTORY, MNIST, ImageFiles, data_directory, read_images, why_no_data
from grokscope.images.idx import ImageDataError, read_idx

__all__ = [
    "DATA_DIRECTORY",
    "MNIST",
    "ImageDataError",
    "ImageFiles",
    "data_directory",
    "read_idx",
    "read_images",
    "why_no_data",
]
