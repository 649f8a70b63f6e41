/* SPDX-License-Identifier: MIT
 *
 * Lines and requests of clients that execute something: judged as the tool call that each is.
 */
#include "core/router.h"

void router_execute(struct client *c, struct session *s, struct chunk line, const struct envelope *e,
					const struct gate_row *row) {
	(void)row;
	if (e->request.p)
		router_call(c, s, line, e, NULL);
	else
		router_pass_line(c, s, line);
}
