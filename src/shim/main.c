/* SPDX-License-Identifier: MIT
 *
 * plenum-shim: stands where an SDK expects the `claude` executable, and is that to it, while the agent runs under
 * plenumd. Anything that is not a stream-json conversation is the real CLI's own business.
 */
#include "base/fd.h"
#include "shim/cli.h"
#include "shim/descriptors.h"
#include "shim/options.h"
#include "shim/print.h"
#include "shim/pump.h"
#include "shim/wrapper.h"

#include <stdlib.h>

extern char **environ;

int main(int argc, char **argv) {
	static struct options o; /* with its words, to the end of the process */
	if (argc < 1) return 64;
	fd_fill_standard();
	options_read(&o, argv + 1, environ);
	if (o.cli) setenv("PLENUM_CLAUDE", o.cli, true); /* for the daemon, too */
	o.env = environ;
	if (o.rpc) return pump_run(&o);
	if (o.itself || !(o.stream || o.print) || wrapper_is_agent(o.argv)) return cli_exec(o.argv - 1);
	if (o.print && !options_take_prompt(&o)) return 1;
	if (!descriptors_replace(&o)) return 1;
	return o.print ? print_run(&o) : pump_run(&o);
}
