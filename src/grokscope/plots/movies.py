"""Pictures one after another as the content of a GIF or MP4 file."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from grokscope.errors import GrokscopeError

_COLOURS = 128
_LAST_SECONDS = 2.0  # that the end stays


def check_movie_path(path: Path) -> None:
    """Refuse a path whose ending names no format, or one that cannot be made here, before anything is computed."""
    if path.suffix not in (".gif", ".mp4"):
        raise GrokscopeError(f"--out = {str(path)!r} is not allowed: must end in .gif or .mp4")
    if path.suffix == ".mp4" and shutil.which("ffmpeg") is None:
        raise GrokscopeError(
            "an .mp4 file needs the program ffmpeg, which is not here: install it, or name a .gif file"
        )


def movie_bytes(pictures: Sequence[Image.Image], kind: str, per_second: float) -> bytes:
    """The film as the content of a .gif or .mp4 file."""
    return (_gif if kind == ".gif" else _mp4)(pictures, per_second)


def _gif(pictures: Sequence[Image.Image], per_second: float) -> bytes:
    """Few colours, the same in all pictures, so that what does not change takes no room."""
    sample = pictures[:: max(1, len(pictures) // 6)]
    together = Image.new("RGB", (sample[0].width, sum(picture.height for picture in sample)))
    for place, picture in enumerate(sample):
        together.paste(picture, (0, place * picture.height))
    colours = together.quantize(_COLOURS)
    first, *others = (picture.quantize(palette=colours, dither=Image.Dither.NONE) for picture in pictures)
    durations = [round(1000 / per_second)] * len(pictures)
    durations[-1] += round(1000 * _LAST_SECONDS)
    content = BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    return content.getvalue()


def _mp4(pictures: Sequence[Image.Image], per_second: float) -> bytes:
    size = "x".join(map(str, pictures[0].size))
    still = [pictures[-1]] * round(per_second * _LAST_SECONDS)
    with tempfile.TemporaryDirectory(prefix="grokscope-") as directory:
        file = Path(directory) / "film.mp4"
        # Players want an even number of pixels both ways, and colours at half of the resolution.
        command = ["ffmpeg", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size]
        command += ["-r", f"{per_second:g}", "-i", "-", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white"]
        command += ["-pix_fmt", "yuv420p", "-movflags", "+faststart", str(file)]
        content = b"".join(picture.tobytes() for picture in [*pictures, *still])
        done = subprocess.run(command, input=content, capture_output=True, check=False)
        if done.returncode or not file.exists():
            said = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
            raise GrokscopeError(f"ffmpeg could not make the film: {said}; a .gif file needs no ffmpeg")
        return file.read_bytes()
