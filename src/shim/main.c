/* SPDX-License-Identifier: MIT
 *
 * plenum-shim: stands where an SDK expects the `claude` executable, and is that to it, while the agent runs under
 * plenumd. Anything that is not a stream-json conversation is the real CLI's own business.
 */
#include "base/macros.h"
#include "shim/attach.h"
#include "shim/cli.h"
#include "shim/options.h"
#include "shim/pump.h"

#include <fcntl.h>

extern char **environ;

/* A descriptor that whoever started us left closed would become our socket. */
static void fill_standard_fds(void) {
	int fd;
	do fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO) close(fd);
}

int main(int argc, char **argv) {
	struct options o;
	if (argc < 1) return 64;
	fill_standard_fds();
	options_read(&o, argv + 1, environ);
	if (o.info || !o.stream || attach_is_agent()) return cli_exec(argv);
	return pump_run(&o);
}
