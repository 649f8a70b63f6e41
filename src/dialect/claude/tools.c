/* SPDX-License-Identifier: MIT */
#include "dialect/tools.h"

#include "base/macros.h"

#include <string.h>

static const struct tool_use uses[] = {
	{"Bash", "Bash", TOOL_COMMAND, {"command"}, true},
	{"Monitor", "Bash", TOOL_COMMAND, {"command"}, false},
	{"Monitor", "WebFetch", TOOL_URL, {"ws"}, false},
	{"PowerShell", "Bash", TOOL_FOREIGN, {"command"}, false},
	{"REPL", "Bash", TOOL_CODE, {"code"}, false},
	{"AppifactRepl", "Bash", TOOL_CODE, {"code"}, false},
	{"self_hosted_runner_spawn_local", "Bash", TOOL_CODE, {"secret_file_path"}, false},
	{"self_hosted_runner_spawn_local", "Read", TOOL_PATH, {"secret_file_path"}, false},
	{"self_hosted_runner_spawn_local", "Edit", TOOL_PATH, {"base_dir"}, false},
	{"self_hosted_runner_spawn_local", "Edit", TOOL_PATH, {"log_path"}, false},
	{"self_hosted_runner_tail_log", "Read", TOOL_PATH, {"log_path"}, false},
	{"Read", "Read", TOOL_PATH, {"file_path"}, true},
	{"NotebookRead", "Read", TOOL_PATH, {"notebook_path"}, true},
	{"Grep", "Read", TOOL_SEARCH, {"path"}, true},
	{"Glob", "Read", TOOL_SEARCH, {"path"}, true},
	{"LS", "Read", TOOL_SEARCH, {"path"}, true},
	{"LSP", "Read", TOOL_PATH, {"filePath"}, false},
	{"SendFile", "Read", TOOL_PATH, {"files"}, false},
	{"SendUserFile", "Read", TOOL_PATH, {"files"}, false},
	{"SendUserMessage", "Read", TOOL_PATH, {"attachments"}, false},
	{"Artifact", "Read", TOOL_PATH, {"file_path"}, false},
	{"Artifact", "Read", TOOL_PATH, {"file_paths"}, false},
	{"Artifact", "Read", TOOL_PATH, {"files"}, false},
	{"Artifact", "Edit", TOOL_PATH, {"out_dir"}, false},
	{"Projects", "Read", TOOL_PATH, {"local_path"}, false},
	{"DesignSync", "Read", TOOL_PATH, {"localDir"}, false},
	{"DesignSync", "Read", TOOL_PATH, {"files"}, false},
	{"PublishPlugin", "Read", TOOL_PATH, {"path"}, false},
	{"Workflow", "Read", TOOL_PATH, {"scriptPath"}, false},
	{"Edit", "Edit", TOOL_PATH, {"file_path"}, true},
	{"MultiEdit", "Edit", TOOL_PATH, {"file_path"}, true},
	{"Write", "Edit", TOOL_PATH, {"file_path"}, true},
	{"NotebookEdit", "Edit", TOOL_PATH, {"notebook_path"}, true},
	{"WebFetch", "WebFetch", TOOL_URL, {"url"}, true},
	{"Task", "Task", TOOL_NAME, {"subagent_type"}, true},
	{"Agent", "Task", TOOL_NAME, {"subagent_type"}, true},
	{"Skill", "Skill", TOOL_NAME, {"skill", "command"}, true},
};

/* None of their members is the subject of a rule with a pattern. */
static const char *const others[] = {
	"AskUserQuestion",
	"BashOutput",
	"ClaudeDesign",
	"CronCreate",
	"CronDelete",
	"CronList",
	"EndConversation",
	"EnterPlanMode",
	"EnterWorktree",
	"ExitPlanMode",
	"ExitWorktree",
	"FetchInboxMessage",
	"GetGoal",
	"GetTask",
	"KillBash",
	"KillShell",
	"ListAgents",
	"ListConnectors",
	"ListMcpResourcesTool",
	"ListPlugins",
	"McpTaskCheck",
	"McpTaskResumePolling",
	"McpTaskShowQuestion",
	"ObserverReport",
	"OfferChromeSetup",
	"PauseGoal",
	"Poll",
	"ProposeGoal",
	"PushNotification",
	"ReadMcpResourceDirTool",
	"ReadMcpResourceTool",
	"ReadNotifications",
	"ReadWidgetContext",
	"RefreshMcpTools",
	"RemoteTrigger",
	"ReportFindings",
	"ScheduleWakeup",
	"SearchMcpRegistry",
	"SendFeedback",
	"SendMessage",
	"SendToProject",
	"SendToProjectContext",
	"SetGoal",
	"ShareOnboardingGuide",
	"ShowOnboardingRolePicker",
	"StructuredOutput",
	"SubagentHandback",
	"SuggestConnectors",
	"SuggestPluginInstall",
	"SuggestSkills",
	"TaskCreate",
	"TaskGet",
	"TaskList",
	"TaskOutput",
	"TaskStop",
	"TaskUpdate",
	"TestingPermission",
	"TodoWrite",
	"ToolSearch",
	"WaitForMcpServers",
	"WebSearch",
	"WrapUp",
	"Yield",
	"memory_list",
	"memory_read",
	"memory_write",
	"propose_skills",
	"self_hosted_runner_get_pool",
	"self_hosted_runner_list_runners",
	"self_hosted_runner_list_secrets",
	"self_hosted_runner_list_sessions",
	"self_hosted_runner_read_health",
	"self_hosted_runner_read_metrics",
	"self_hosted_runner_requeue_session",
};

const struct tool_use *tools_uses(const char *tool, size_t length, size_t *n) {
	const struct tool_use *first = NULL;
	*n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(uses); i++) {
		if (strlen(uses[i].tool) != length || memcmp(uses[i].tool, tool, length) != 0) continue;
		if (!first) first = &uses[i];
		++*n;
	}
	return first;
}

bool tools_know(const char *tool) {
	size_t n;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(others[i], tool) == 0) return true;
	return tools_uses(tool, strlen(tool), &n) != NULL;
}

size_t tools_count(void) {
	return ARRAY_SIZE(uses);
}

size_t tools_others(void) {
	return ARRAY_SIZE(others);
}
