# SPDX-License-Identifier: MIT
"""What somebody would try who knows the contract and not the source."""
import json

from harness import Case, init, perm, request, user


class VerbTest(Case):
    def test_how_is_one_of_two_words(self):
        d, _ = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.request, "plenum_shutdown", how="gently")
        self.assertRefused("bad_request", c.request, "plenum_shutdown", how="")
        c.attach("work")
        self.assertRefused("bad_request", c.request, "plenum_stop", how="gently")
        self.assertRefused("no_such_session", c.request, "plenum_stop", session="other", how="gently")

    def test_the_prefix_alone_is_no_request_for_the_child(self):
        d, agent = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.request, "plenum_")
        c.attach("work")
        self.assertRefused("bad_request", c.request, "plenum_")
        self.assertNone(agent.child().seen(request__subtype="plenum_"))

    def test_an_empty_conversation_is_none(self):
        d, agent = self.start()
        c = d.client()
        self.assertRefused("bad_request", c.attach, "work", resume="")
        self.assertRefused("bad_request", c.attach, "work", resume="", fork=True)
        self.assertEqual(c.request("plenum_list")["sessions"], [])
        self.assertEqual(agent.starts, 0)
