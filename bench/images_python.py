"""Images a second that one thread of Python reads, decodes and transforms with Pillow, NumPy and, where it is there,
PyTorch: the operations of torchvision's usual training pipelines. Beside bench_images, with the same arguments.

  python3 bench/images_python.py LIST ROOT [SECONDS]
"""
import random
import sys
import time

import numpy
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None

SIDE = 224
MEAN = numpy.array([123.7, 116.3, 103.5], numpy.float32) / 255
DEVIATION = numpy.array([58.4, 57.1, 57.4], numpy.float32) / 255


def normalized(image):
    if random.random() < 0.5:
        image = image.transpose(Image.FLIP_LEFT_RIGHT)
    if torch:
        tensor = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous().float().div(255)
        return tensor.sub_(torch.from_numpy(MEAN)[:, None, None]).div_(torch.from_numpy(DEVIATION)[:, None, None])
    values = numpy.ascontiguousarray(numpy.asarray(image).transpose(2, 0, 1)).astype(numpy.float32) / 255
    return (values - MEAN[:, None, None]) / DEVIATION[:, None, None]


def read(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def shorter_side(image):
    width, height = image.size
    scale = 256 / min(width, height)
    image = image.resize((max(256, round(width * scale)), max(256, round(height * scale))), Image.BILINEAR)
    left, top = random.randint(0, image.size[0] - SIDE), random.randint(0, image.size[1] - SIDE)
    return image.crop((left, top, left + SIDE, top + SIDE))


def random_resized_crop(image):
    width, height = image.size
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        aspect = 2.718281828459045 ** random.uniform(-0.2876821, 0.2876821)
        wide, tall = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if 0 < wide <= width and 0 < tall <= height:
            left, top = random.randint(0, width - wide), random.randint(0, height - tall)
            break
    else:
        wide = tall = min(width, height)
        left, top = (width - wide) // 2, (height - tall) // 2
    return image.crop((left, top, left + wide, top + tall)).resize((SIDE, SIDE), Image.BILINEAR)


def jitter(image):
    for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = change(image).enhance(random.uniform(0.6, 1.4))
    return image


def affine(*matrix):
    return lambda image: image.transform(image.size, Image.AFFINE, matrix, Image.BILINEAR)


def operation(wide, share):
    """One of torchvision's RandAugment or TrivialAugmentWide, on its backend."""
    sign = random.choice((-1, 1))
    shear, factor = sign * share * (0.99 if wide else 0.3), 1 + sign * share * (0.99 if wide else 0.9)
    pixels, degrees = int(sign * share * (32 if wide else 150 / 331 * SIDE)), sign * share * (135 if wide else 30)
    enhance = [lambda image, kind=kind: kind(image).enhance(factor) for kind in
               (ImageEnhance.Brightness, ImageEnhance.Color, ImageEnhance.Contrast, ImageEnhance.Sharpness)]
    return random.choice([
        lambda image: image, affine(1, shear, 0, 0, 1, 0), affine(1, 0, 0, shear, 1, 0),
        affine(1, 0, -pixels, 0, 1, 0), affine(1, 0, 0, 0, 1, -pixels),
        lambda image: image.rotate(degrees, Image.BILINEAR), *enhance,
        lambda image: ImageOps.posterize(image, 8 - round(share * (6 if wide else 4))),
        lambda image: ImageOps.solarize(image, 255 * (1 - share)), ImageOps.autocontrast, ImageOps.equalize])


def rand_augment(image):
    for _ in range(2):
        image = operation(False, 9 / 30)(image)
    return image


def trivial_augment(image):
    return operation(True, random.randrange(31) / 30)(image)


def blur(image):
    return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2)))


def measure(name, paths, seconds, item):
    for path in paths[:20]:
        item(path)
    begin, done = time.process_time(), 0
    while time.process_time() - begin < seconds:
        item(paths[done % len(paths)])
        done += 1
    rate = done / (time.process_time() - begin)
    print(f"{name:44} {rate:8.0f} images/s  {1000 / rate:6.2f} ms", flush=True)


def main():
    with open(sys.argv[1]) as file:
        paths = [sys.argv[2] + line.rsplit(None, 1)[0] for line in file if line.strip()]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 3
    measure("shorter side 256, random crop 224, mirror", paths, seconds, lambda p: normalized(shorter_side(read(p))))
    measure("random resized crop 224, mirror", paths, seconds, lambda p: normalized(random_resized_crop(read(p))))
    measure("random resized crop 224, mirror, colours", paths, seconds,
            lambda p: normalized(jitter(random_resized_crop(read(p)))))
    measure("of these: decoding", paths[:64], seconds, read)
    images = [shorter_side(read(path)) for path in paths[:64]]
    for name, change in (("mirror, mean and deviation", lambda image: image), ("the same with colours", jitter),
                         ("the same with rand_augment", rand_augment),
                         ("the same with trivial_augment", trivial_augment), ("the same blurred", blur)):
        measure(name, images, seconds, lambda image: normalized(change(image)))


if __name__ == "__main__":
    main()
