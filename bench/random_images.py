"""A database of random images as large as MNIST's, for measurements that read data but do not look at it."""
import os
import struct
import subprocess


def write_database(folder, programs, images):
    """As FOLDER/lmdb, by the convert_mnist_data of `programs`."""
    with open(f"{folder}/images", "wb") as file:
        file.write(struct.pack(">4i", 2051, images, 28, 28) + os.urandom(images * 28 * 28))
    with open(f"{folder}/labels", "wb") as file:
        file.write(struct.pack(">2i", 2049, images) + bytes(i % 10 for i in range(images)))
    subprocess.run([f"{programs}/convert_mnist_data", f"{folder}/images", f"{folder}/labels", f"{folder}/lmdb"],
                   check=True, capture_output=True)
