"""What a check found good, remembered in the user's cache folder under a key that names all that the answer depends on."""
import os
import pathlib

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tilewright" / "lint"


class Remembered:
    def __init__(self, folder=CACHE):
        self.folder = folder

    def __contains__(self, key):
        return (self.folder / key).exists()

    def add(self, key):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / key).touch()
