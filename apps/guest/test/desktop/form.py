"""A window for tests: a form above an area that reports what the mouse does. Prints one JSON object per line."""

import json
import os
import sys

import gi

gi.require_version('Gdk', '3.0')
gi.require_version('Gtk', '3.0')
from gi.repository import Gdk, GdkPixbuf, GLib, Gtk  # noqa: E402

AREA = (600, 300)


def report(**event):
    print(json.dumps(event), flush=True)


def pressed(area, event):
    kinds = {Gdk.EventType.BUTTON_PRESS: 'down', Gdk.EventType._2BUTTON_PRESS: 'double'}
    if event.type in kinds:
        report(event=kinds[event.type], button=event.button, x=round(event.x_root), y=round(event.y_root))


def scrolled(area, event):
    report(event='scroll', direction=event.direction.value_nick, x=round(event.x_root), y=round(event.y_root))


def noise(width, height):
    """A picture that cannot be compressed."""
    pixels = GLib.Bytes.new(os.urandom(width * height * 3))
    return GdkPixbuf.Pixbuf.new_from_bytes(pixels, GdkPixbuf.Colorspace.RGB, False, 8, width, height, width * 3)


def main():
    window = Gtk.Window(title='Test form')
    window.set_default_size(600, 400)
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
    window.add(box)
    entry = Gtk.Entry()
    entry.get_accessible().set_name('Full name')
    entry.connect('changed', lambda widget: report(event='text', text=widget.get_text()))
    entry.connect('key-press-event', lambda _, event: report(
        event='key', key=Gdk.keyval_name(event.keyval), control=bool(event.state & Gdk.ModifierType.CONTROL_MASK)))
    box.add(entry)
    button = Gtk.Button(label='Send')
    button.connect('clicked', lambda _: report(event='sent', text=entry.get_text()))
    box.add(button)
    area = Gtk.EventBox()
    area.set_events(Gdk.EventMask.BUTTON_PRESS_MASK | Gdk.EventMask.BUTTON_RELEASE_MASK | Gdk.EventMask.SCROLL_MASK
                    | Gdk.EventMask.POINTER_MOTION_MASK)
    area.connect('button-press-event', pressed)
    area.connect('button-release-event', lambda _, event: report(
        event='up', button=event.button, x=round(event.x_root), y=round(event.y_root)))
    area.connect('motion-notify-event', lambda _, event: report(
        event='move', x=round(event.x_root), y=round(event.y_root)))
    area.connect('scroll-event', scrolled)
    area.add(Gtk.Image.new_from_pixbuf(noise(*AREA)))
    box.pack_start(area, True, True, 0)
    window.connect('destroy', Gtk.main_quit)
    window.show_all()
    window.move(100, 100)
    GLib.timeout_add(50, lambda: report(event='shown') if window.get_window() else True)
    Gtk.main()


if __name__ == '__main__':
    sys.exit(main())
