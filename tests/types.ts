// SPDX-License-Identifier: MIT
// Compiled by `./dev lint types`, never run: the declarations tell apart what a client tells apart.
import type { Event, PlenumStatusAnswer, Refusal, Replay, Verbs } from "../schema/plenum-protocol";

export function lost(event: Event): number {
  return event.event === "gap" ? event.to - event.from + 1 : 0;
}

export function decider(event: Event): string | null {
  return event.event === "settled" && event.decision !== "timeout" ? event.by.name : null;
}

export function guards(status: PlenumStatusAnswer): number {
  return "guards" in status ? status.guards.length : "profiles" in status ? status.profiles.length : 0;
}

export function again(refusal: Refusal): boolean {
  return refusal.response.code === "busy";
}

export const replay: Replay = { after: 7 };
export const attach: Verbs["plenum_attach"]["request"] = { subtype: "plenum_attach", approve: { tools: ["Bash"] }, replay };

// @ts-expect-error: no such member
export const wrong: Verbs["plenum_stop"]["request"] = { subtype: "plenum_stop", kill: true };
