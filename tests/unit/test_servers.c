/* SPDX-License-Identifier: MIT */
#include "core/servers.h"

#include "core/owners.h"
#include "world.h"

#define SET(servers)                                                                                                   \
	"{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{\"subtype\":\"mcp_set_servers\",\"servers\":"     \
	"" servers "}}\n"

START_TEST(the_servers_of_others_stay) {
	struct client *one = world_enter(), *two = world_enter();
	ck_assert_ptr_null(owners_add_server(one->attachment, "ones"));
	world_sends(two, SET("{\"twos\":{\"type\":\"sdk\",\"name\":\"twos\"}}"));
	const char *written = world_written();
	HAS(written, "mcp_set_servers");
	HAS(written, "\"ones\"");
	HAS(written, "\"twos\"");
	world_sends(two, SET("{}"));
	HAS(world_said(two), PLENUM_E_DUPLICATE_REQUEST); /* the first one is open */
}
END_TEST

START_TEST(a_taken_name_is_refused) {
	struct client *one = world_enter(), *two = world_enter();
	ck_assert_ptr_null(owners_add_server(one->attachment, "tools"));
	world_sends(two, SET("{\"tools\":{\"type\":\"sdk\",\"name\":\"tools\"}}"));
	HAS(world_said(two), PLENUM_E_NAME_TAKEN);
	ck_assert_str_eq(world_written(), "");
	ck_assert_ptr_null(two->attachment->owner);
}
END_TEST

RUN_TESTS_WITH(world_begin, world_end, "servers", the_servers_of_others_stay, a_taken_name_is_refused)
