# SPDX-License-Identifier: MIT
"""A notification service on the session bus (Desktop Notifications Specification 1.2), for Debian's own python3.

Prints the address of its bus, then each notification as a JSON line. Reads `ID KEY` lines: the button KEY of the
notification ID is pressed. Ends with its input."""
import json
import os
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"


def say(obj):
    print(json.dumps(obj), flush=True)


class Service(dbus.service.Object):
    last = 0

    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, title, body, actions, hints, expire):
        self.last += 1
        say({"id": self.last, "app": app, "title": title, "body": body, "actions": list(actions[::2]),
             "labels": list(actions[1::2]), "urgency": int(hints.get("urgency", 1))})
        return self.last

    @dbus.service.method(NAME, out_signature="as")
    def GetCapabilities(self):
        return ["actions", "body", "body-markup"]

    @dbus.service.method(NAME, out_signature="ssss")
    def GetServerInformation(self):
        return ("test", "plenum", "1", "1.2")

    @dbus.service.method(NAME, in_signature="u")
    def CloseNotification(self, number):
        self.NotificationClosed(number, 3)

    @dbus.service.signal(NAME, signature="us")
    def ActionInvoked(self, number, key):
        pass

    @dbus.service.signal(NAME, signature="uu")
    def NotificationClosed(self, number, reason):
        pass

    def press(self, line):
        number, key = line.split()
        self.ActionInvoked(int(number), key)
        self.NotificationClosed(int(number), 2)


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    loop = GLib.MainLoop()
    bus = dbus.SessionBus()
    name = dbus.service.BusName(NAME, bus, do_not_queue=True)
    service = Service(name, "/org/freedesktop/Notifications")

    def on_input(_fd, _condition):
        line = sys.stdin.readline()
        if line:
            service.press(line)
        else:
            loop.quit()
        return bool(line)

    GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, on_input)
    say({"bus": os.environ["DBUS_SESSION_BUS_ADDRESS"]})
    loop.run()


if __name__ == "__main__":
    main()
