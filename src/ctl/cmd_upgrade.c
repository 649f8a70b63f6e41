/* SPDX-License-Identifier: MIT
 *
 * upgrade: the binary that is installed takes over from the one that runs.
 */
#include "ctl/ctl.h"
#include "plenum/protocol.h"

#include <stdio.h>

int cmd_upgrade(struct ctl *c, int argc, char **argv) {
	_cleanup_json_ json_t *answer = NULL;
	int code = ctl_options(c, NULL, &argc, &argv, 0, 0);
	if (code != CTL_GO) return code;
	code = ctl_ask_once(c, PLENUM_UPGRADE, NULL, &answer);
	if (code != CTL_OK) return code;
	if (c->json) return ctl_print_json(answer);
	printf("plenumd %s has taken over; sessions and connections go on\n", ctl_str(answer, "version", "?"));
	return CTL_OK;
}
