# SPDX-License-Identifier: MIT
"""Turns of one session shared by several clients."""

from harness import Case, is_event


def is_idle(line):
    return line.get("subtype") == "session_state_changed" and line["state"] == "idle"


def shared(client):
    """Return the bytes that all attached clients should have received alike, up to the end of the turn."""
    with client.changed:
        end = next(number for number, line in enumerate(client.lines) if is_idle(line))
        return [raw for raw, line in zip(client.raw[:end], client.lines)
                if line.get("type") not in ("control_request", "control_response", "control_cancel_request")
                and line.get("subtype") != "plenum_event"]


class Turns(Case):
    def test_two_clients_see_the_same_turn(self):
        one, two = self.client("work"), self.client("work")
        self.assertTrue(one.attached["created"])
        self.assertFalse(two.attached["created"])
        uuid = one.prompt("hello both")
        for client in (one, two):
            self.assertEqual(client.wait_result(uuid)["result"], "echo: hello both")
            client.wait("idle", is_idle)
        self.assertEqual(shared(one), shared(two))
        kinds = {line["type"] for line in two.lines}
        self.assertLessEqual({"system", "user", "assistant", "stream_event", "result"}, kinds)

    def test_either_may_prompt_and_the_conversation_is_one(self):
        one, two = self.client("work"), self.client("work")
        one.turn("remember quince")
        since = one.mark()
        uuid = two.prompt("@history@")
        self.assertIn("quince", two.wait_result(uuid)["result"])
        self.assertIn("quince", one.wait_result(uuid, since)["result"])

    def test_prompts_in_mid_turn_each_get_a_result(self):
        one, two = self.client("work"), self.client("work")
        first = one.prompt("@slow 100@ first")
        one.wait("the turn runs", lambda l: l.get("type") == "stream_event")
        second = two.prompt("second")
        for client in (one, two):
            self.assertIn("first", client.wait_result(first)["result"])
            self.assertIn("second", client.wait_result(second)["result"])

    def test_the_same_request_id_of_two_clients(self):
        one, two = self.client("work"), self.client("work")
        one.turn("hello")
        plan, status = {"subtype": "set_permission_mode", "mode": "plan"}, {"subtype": "mcp_status"}
        for client, request in ((one, plan), (two, status)):
            client.send({"type": "control_request", "request_id": "1", "request": request})
        payload = {}
        for client in (one, two):
            answer = client.wait("the answer to 1", lambda l: l.get("type") == "control_response"
                                 and l["response"]["request_id"] == "1")
            self.assertEqual(answer["response"]["subtype"], "success")
            payload[client] = answer["response"].get("response") or {}
        self.assertNotIn("mcpServers", payload[one])
        self.assertIn("mcpServers", payload[two])

    def test_interrupt_by_another_client(self):
        one, two = self.client("work"), self.client("work")
        uuid = one.prompt("@slow 500@ @pieces 200@ @long 2000@")
        two.wait("the turn runs", lambda l: l.get("type") == "stream_event")
        two.ask("interrupt")
        for client in (one, two):
            self.assertEqual(client.wait_result(uuid)["subtype"], "error_during_execution")
        self.assertEqual(two.turn("go on")["result"], "echo: go on")

    def test_clear_changes_the_conversation_and_the_session_stays(self):
        one, two = self.client("work"), self.client("work")
        one.turn("remember quince")
        before = self.state("work")
        self.assertTrue(before["conversation_id"])
        one.prompt("/clear")
        result = one.turn("@history@")
        self.assertNotIn("quince", result["result"])
        after = self.state("work")
        self.assertEqual(after["conversation_id"], result["session_id"])
        self.assertNotEqual(after["conversation_id"], before["conversation_id"])
        self.assertEqual(after["pid"], before["pid"])
        self.assertEqual(two.turn("still here")["result"], "echo: still here")

    def test_an_observer_sees_and_may_not_write(self):
        driver, observer = self.client("work"), self.client("work", role="observer")
        observer.prompt("not mine to say")
        self.assertEqual(observer.wait_event("error")["code"], "not_allowed")
        observer.refused("interrupt", "not_allowed")
        uuid = driver.prompt("seen")
        self.assertEqual(observer.wait_result(uuid)["result"], "echo: seen")
        self.assertFalse(driver.seen(lambda l: l.get("type") == "user" and "not mine" in str(l["message"]["content"])))

    def test_everybody_is_told_of_a_changed_mode(self):
        one, two = self.client("work"), self.client("work", name="two")
        one.turn("hello")
        two.ask("set_permission_mode", mode="acceptEdits")
        event = one.wait_event("changed", what="permission_mode")
        self.assertIn("acceptEdits", str(event["value"]))
        self.assertEqual(event["by"]["name"], "two")

    def test_a_late_client_gets_the_history(self):
        one = self.client("work")
        uuid = one.prompt("early")
        one.wait("the end of the turn", is_idle)
        late = self.client("work", replay="all", tag=True)
        late.wait_result(uuid)
        late.wait("idle", is_idle)
        numbers = [line["plenum_seq"] for line in late.lines if "plenum_seq" in line]
        self.assertEqual(numbers, sorted(set(numbers)))
        second = one.prompt("later")
        one.wait_result(second)
        third = self.client("work", replay={"after": numbers[-1]}, tag=True)
        third.wait_result(second)
        self.assertEqual(next(line["plenum_seq"] for line in third.lines if "plenum_seq" in line), numbers[-1] + 1)
        self.assertFalse(third.seen(lambda l: is_event(l, "gap")))
