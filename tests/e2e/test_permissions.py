# SPDX-License-Identifier: MIT
"""Permission requests of the real CLI to several clients."""

import json

from harness import Case, allow, bash, deny, for_command, is_ask, tool_results, wait_until


class Permissions(Case):
    def test_asked_of_both_answered_by_one(self):
        one, two = self.client("work", name="one"), self.client("work", name="two")
        uuid = one.prompt(bash("touch made"))
        asked = {client: client.wait_request("can_use_tool") for client in (one, two)}
        two.answer(asked[two], allow(asked[two]))
        one.wait_cancel(asked[one])
        settled = one.wait_event("settled", request_id=asked[one]["request_id"])
        self.assertEqual(settled["by"]["name"], "two")
        one.wait_result(uuid)
        self.assertTrue((self.work / "made").exists())
        since = one.mark()
        one.answer(asked[one], deny())
        self.assertEqual(one.wait_event("error", since)["code"], "already_settled")
        self.assertEqual([len(client.seen(is_ask)) for client in (one, two)], [1, 1])

    def test_denied(self):
        one, two = self.client("work"), self.client("work")
        uuid = one.prompt(bash("touch made"))
        asked = {client: client.wait_request("can_use_tool") for client in (one, two)}
        one.answer(asked[one], deny("because I say so"))
        two.wait_cancel(asked[two])
        two.wait_result(uuid)
        self.assertFalse((self.work / "made").exists())
        self.assertIn("because I say so", str(tool_results(two)))

    def test_changed_input(self):
        one = self.client("work")
        uuid = one.prompt(bash("touch asked"))
        changed = {"behavior": "allow", "updatedInput": {"command": "touch changed"}}
        one.answer(one.wait_request("can_use_tool"), changed)
        one.wait_result(uuid)
        self.assertEqual([(self.work / name).exists() for name in ("asked", "changed")], [False, True])

    def test_bad_answers_leave_it_open(self):
        one = self.client("work")
        uuid = one.prompt(bash("touch made"))
        request = one.wait_request("can_use_tool")
        for body in ({}, {"behavior": "perhaps"}, {"behavior": "deny"}, ["allow"]):
            since = one.mark()
            one.answer(request, body)
            self.assertEqual(one.wait_event("error", since)["code"], "bad_answer", body)
        one.answer(request, {"behavior": "allow"})  # 2.1.197 would refuse it without updatedInput
        one.wait_result(uuid)
        self.assertTrue((self.work / "made").exists())

    def test_the_prompt_outlives_the_client_that_held_it(self):
        holder = self.process_client("work")
        watcher = self.client("work", role="observer")
        uuid = holder.prompt(bash("touch made"))
        holder.wait_request("can_use_tool")
        holder.kill()
        self.assertFalse(watcher.seen(is_ask))
        other = self.client("work")
        request = other.wait_request("can_use_tool")
        self.assertEqual(len(other.attached["pending"]), 1)
        other.answer(request, allow(request))
        watcher.wait_result(uuid)
        self.assertTrue((self.work / "made").exists())
        self.assertEqual(len(other.seen(is_ask)), 1)

    def test_several_open_at_once(self):
        one, two = self.client("work"), self.client("work")
        names = ("first", "second", "third")
        jobs = [{"description": name, "subagent_type": "general-purpose", "run_in_background": True,
                 "prompt": "#tool Bash " + json.dumps({"command": f"touch {name}"}) + "#"} for name in names]
        one.prompt("".join("@tool Task " + json.dumps(job) + "@" for job in jobs))
        asked = {}
        for name in names:
            asked[name] = [client.wait_request("can_use_tool", where=for_command(f"touch {name}"))
                           for client in (one, two)]
        two.answer(asked["third"][1], allow(asked["third"][1]))
        one.answer(asked["first"][0], deny())
        one.answer(asked["second"][0], allow(asked["second"][0]))
        one.wait_cancel(asked["third"][0])
        two.wait_cancel(asked["first"][1])
        two.wait_cancel(asked["second"][1])
        wait_until("the allowed commands ran",
                   lambda: all((self.work / name).exists() for name in ("second", "third")))
        self.wait_state("work", "idle")
        self.assertFalse((self.work / "first").exists())

    def test_interrupt_withdraws_the_prompt(self):
        one, two = self.client("work"), self.client("work")
        uuid = one.prompt(bash("touch made"))
        asked = {client: client.wait_request("can_use_tool") for client in (one, two)}
        self.assertEqual(self.state("work")["state"], "asking")
        two.ask("interrupt")
        for client in (one, two):
            client.wait_cancel(asked[client])
        one.wait_result(uuid)
        since = one.mark()
        one.answer(asked[one], allow(asked[one]))
        self.assertIn(one.wait_event("error", since)["code"], ("already_settled", "unknown_request"))
        self.assertEqual(one.turn("go on")["result"], "echo: go on")
        self.assertFalse((self.work / "made").exists())

    def test_only_approvers_are_asked(self):
        driver, watcher = self.client("work", approve=False), self.client("work", role="observer", approve=True)
        uuid = driver.prompt(bash("touch made"))
        request = watcher.wait_request("can_use_tool")
        watcher.answer(request, allow(request))
        driver.wait_result(uuid)
        self.assertTrue((self.work / "made").exists())
        self.assertFalse(driver.seen(is_ask))
