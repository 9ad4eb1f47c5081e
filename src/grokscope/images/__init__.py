"""Images with labels from IDX files, such as MNIST: reading, checking and downloading them."""

from grokscope.images.download import MIRROR, download_mnist
from grokscope.images.files import DATA_DIRECTORY, MNIST, ImageFiles, data_directory, read_images, why_no_data
from grokscope.images.idx import ImageDataError, read_idx

__all__ = [
    "DATA_DIRECTORY",
    "MIRROR",
    "MNIST",
    "ImageDataError",
    "ImageFiles",
    "data_directory",
    "download_mnist",
    "read_idx",
    "read_images",
    "why_no_data",
]
