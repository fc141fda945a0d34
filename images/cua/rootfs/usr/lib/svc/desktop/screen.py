"""Pictures of the display, read from the memory of Xvfb without a copy through the X protocol."""

import io
import mmap
import struct

from PIL import Image, ImageDraw, ImageFont

# Low compression: on an emulated processor, time matters more than size.
PNG_LEVEL = 1
JPEG_QUALITIES = (85, 70, 50, 30)
HEADER = struct.Struct('>25I')
BOX_COLOURS = ('#d50000', '#2962ff', '#00796b', '#aa00ff', '#e65100')


def size(path):
    """The width and height of the display in pixels. `path` as for `capture`."""
    with open(path, 'rb') as file:
        header = HEADER.unpack(file.read(HEADER.size))
    return header[4], header[5]


def capture(path):
    """The display as an image. `path` is Xvfb's frame buffer: an XWD file of 32 bits per pixel."""
    width, _, [pixels] = strips(path, None)
    return image_of(width, pixels)


def strips(path, rows, is_wanted=lambda top, bottom: True):
    """Width and height of the display, and its pixels in strips of so many rows, from top to bottom; no `rows`: in one.

    None for each strip that is not wanted, given its first row and the one after its last.
    """
    with open(path, 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        header = HEADER.unpack_from(memory)
        header_bytes, width, height, bits, stride, colours = (header[index] for index in (0, 4, 5, 11, 12, 19))
        if bits != 32 or stride != width * 4:
            raise ValueError(f'{path} has {bits} bits per pixel, and rows of {stride} bytes')
        start, rows = header_bytes + colours * 12, rows or height
        bounds = [(top, min(top + rows, height)) for top in range(0, height, rows)]
        return width, height, [memory[start + top * stride:start + bottom * stride] if is_wanted(top, bottom) else None
                               for top, bottom in bounds]


def image_of(width, pixels):
    """An image of whole rows of pixels."""
    return Image.frombuffer('RGB', (width, len(pixels) // (width * 4)), pixels, 'raw', 'BGRX', width * 4, 1)


def annotate(image, elements):
    """Draws the box of each element with its id into a copy of the image."""
    image = image.copy()
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default()
    for number, element in enumerate(elements):
        box = element['box']
        colour = BOX_COLOURS[number % len(BOX_COLOURS)]
        left, top = box['x'], box['y']
        draw.rectangle((left, top, left + box['width'] - 1, top + box['height'] - 1), outline=colour)
        label = draw.textbbox((0, 0), element['id'], font=font)
        width, height = label[2] + 3, label[3] + 2
        left, top = min(left, image.width - width), max(0, top - height)
        draw.rectangle((left, top, left + width, top + height), fill=colour)
        draw.text((left + 2, top + 1), element['id'], fill='white', font=font)
    return image


def encode(image, kind, max_bytes):
    """The media type and bytes of an image. A PNG that is too large becomes a JPEG."""
    if kind == 'png':
        content = encoded(image, 'PNG', compress_level=PNG_LEVEL)
        if len(content) <= max_bytes:
            return 'image/png', content
    for quality in JPEG_QUALITIES:
        content = encoded(image, 'JPEG', quality=quality)
        if len(content) <= max_bytes:
            return 'image/jpeg', content
    raise ValueError(f'the display does not fit into {max_bytes} bytes')


def encoded(image, kind, **options):
    output = io.BytesIO()
    image.save(output, kind, **options)
    return output.getvalue()
