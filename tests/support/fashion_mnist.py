#!/usr/bin/env python3
"""Writes a stand-in for FashionMNIST: files of its format whose images can be told apart.

    fashion_mnist.py ROOT [--train N] [--test N] [--seed N]

The real data set cannot be fetched where the tests run. torchvision's FashionMNIST(ROOT,
download=True) takes these files as downloaded ones. An image shows a bright rectangle and a bright
bar whose places depend on its class, moved and with noise, so that a model learns them quickly.
"""

import argparse
import pathlib
import random
import struct

SIDE = 28
CLASSES = 10
# The sizes of the real data set.
TRAIN, TEST = 60_000, 10_000
_PIXELS = SIDE * SIDE
_IMAGES_MAGIC, _LABELS_MAGIC = 0x803, 0x801
# The noise takes these bits of a pixel; the others are the picture.
_NOISE = int.from_bytes(bytes([0x3F]) * _PIXELS, "big")


def _picture(label):
    """Returns the pixels of a class, without noise."""
    top, left = 4 + 4 * (label // 5), 3 + 4 * (label % 5)
    bar = 2 + 2 * label
    pixels = bytearray(_PIXELS)
    for row in range(SIDE):
        for column in range(SIDE):
            in_rectangle = top <= row < top + 10 and left <= column < left + 8
            if in_rectangle or bar <= row < bar + 2:
                pixels[row * SIDE + column] = 0xC0
    return bytes(pixels)


def _write(raw, name, count, seed):
    chooser = random.Random(seed)
    pictures = [_picture(label) for label in range(CLASSES)]
    labels = bytes(chooser.randrange(CLASSES) for _ in range(count))
    with open(raw / f"{name}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">4I", _IMAGES_MAGIC, count, SIDE, SIDE))
        for label in labels:
            moved = SIDE * chooser.randrange(3)
            picture = pictures[label][moved:] + pictures[label][:moved]
            noise = int.from_bytes(chooser.randbytes(_PIXELS), "big") & _NOISE
            file.write((int.from_bytes(picture, "big") | noise).to_bytes(_PIXELS, "big"))
    with open(raw / f"{name}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">2I", _LABELS_MAGIC, count))
        file.write(labels)


def write(root, train=TRAIN, test=TEST, seed=0):
    """Writes the four files below ROOT/FashionMNIST/raw; equal arguments give equal files."""
    raw = pathlib.Path(root) / "FashionMNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    _write(raw, "train", train, f"train {seed}")
    _write(raw, "t10k", test, f"test {seed}")
    return raw


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="what a program passes to FashionMNIST")
    parser.add_argument("--train", type=int, default=TRAIN, help="images to train on")
    parser.add_argument("--test", type=int, default=TEST, help="images to test with")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(write(arguments.root, arguments.train, arguments.test, arguments.seed))


if __name__ == "__main__":
    main()
