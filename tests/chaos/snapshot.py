# SPDX-License-Identifier: MIT
"""A child's reports about itself, compared with plenum_attach's answer to a late client (contract 3.2)."""
from harness import dump

ENDS = ("completed", "failed", "killed", "stopped", "cancelled")


class Said:
    """Fed with one child's lines, in both directions."""

    def __init__(self):
        self.asked = {}  # control requests to it, by id
        self.init = self.mode = self.model = self.tasks = self.conversation = None
        self.inits = []
        self.started = {}

    def took(self, obj):
        if obj.get("type") == "control_request":
            self.asked[obj.get("request_id")] = obj.get("request") or {}

    def printed(self, obj):
        kind = obj.get("type")
        if kind == "control_response":
            self.answered(obj.get("response") or {})
        elif kind == "conversation_reset":
            self.init = None
        elif kind == "result":
            self.speaks_of(obj)
        elif kind == "system":
            self.system(obj)

    def speaks_of(self, obj):
        if obj.get("session_id") and obj["session_id"] != self.conversation:
            self.conversation, self.init = obj["session_id"], None

    def system(self, obj):
        sub = obj.get("subtype")
        if sub == "init":
            self.speaks_of(obj)
            self.init = obj
            self.inits.append(obj)
            self.model = obj.get("model")
        if sub in ("init", "status"):
            self.mode = obj.get("permissionMode") or self.mode
        elif sub == "background_tasks_changed":
            self.tasks = obj["tasks"]
        elif sub == "task_started":
            self.started[obj["task_id"]] = True
        elif sub == "task_notification" or (obj.get("patch") or {}).get("status") in ENDS:
            self.started.pop(obj.get("task_id"), None)

    def answered(self, r):
        request, body = self.asked.get(r.get("request_id")) or {}, r.get("response") or {}
        sub = request.get("subtype")
        if r.get("subtype") != "success":
            return
        if sub == "initialize":
            self.mode = body.get("current_permission_mode") or self.mode
        elif sub == "set_permission_mode":
            self.mode = body.get("mode") or request.get("mode")
        elif sub == "set_model":
            named = body.get("model") or request.get("model")
            self.model = None if named == "default" else named


def differs(what, got, want):
    return [] if got == want else ["%s is %s, the child said %s" % (what, dump(got)[:300], dump(want)[:300])]


def errors(answer, run, book):
    """Return the errors in the answer to plenum_attach; run is the newest child of this daemon, or None."""
    if run is None or run.over or not answer["pid"]:
        return of_no_child(answer, run)
    if answer["pid"] != run.pid:
        return ["pid %s, its newest child is %s" % (answer["pid"], run.pid)]
    said = run.said
    wrong = differs("permission_mode", answer["permission_mode"], said.mode) + differs("model", answer["model"], said.model)
    wrong += differs("init", answer["init"], said.init)
    if said.tasks is None:
        wrong += differs("background_tasks", [t["task_id"] for t in answer["background_tasks"]], list(said.started))
    else:
        wrong += differs("background_tasks", answer["background_tasks"], said.tasks)
    entry = book.entries.get(answer["init_seq"]) if book else None
    if entry and said.init and b'"init"' not in entry[2]:
        wrong.append("line %s is no init: %r" % (answer["init_seq"], entry[2]))
    return wrong


def of_no_child(answer, run):
    wrong = differs("permission_mode", answer["permission_mode"], None) + differs("model", answer["model"], None)
    wrong += differs("background_tasks", answer["background_tasks"], [])
    if answer["init"] is not None and (run is None or answer["init"] not in run.said.inits):
        wrong.append("init is %s, the last child never said so" % dump(answer["init"])[:300])
    return wrong
