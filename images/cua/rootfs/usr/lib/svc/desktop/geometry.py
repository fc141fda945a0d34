"""Rectangles on the display: (x, y, width, height) in pixels."""


def clip(box, bounds):
    """The part of a rectangle inside another one; None if there is none."""
    left, top = max(box[0], bounds[0]), max(box[1], bounds[1])
    right = min(box[0] + box[2], bounds[0] + bounds[2])
    bottom = min(box[1] + box[3], bounds[1] + bounds[3])
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None


def centre(box):
    return box[0] + box[2] // 2, box[1] + box[3] // 2


def contains(box, point):
    return box[0] <= point[0] < box[0] + box[2] and box[1] <= point[1] < box[1] + box[3]


def likeness(one, other):
    """How much of their union two rectangles share: 1 for equal ones."""
    shared = clip(one, other)
    if shared is None:
        return 0
    area = shared[2] * shared[3]
    return area / (one[2] * one[3] + other[2] * other[3] - area)
