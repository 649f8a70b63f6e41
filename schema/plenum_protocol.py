# SPDX-License-Identifier: MIT
"""Written by schema/generate.py from plenum-protocol.schema.json; plenum-protocol(7) has the meaning."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, NotRequired, TypeAlias, TypedDict, Union


class Request(TypedDict):
    """A request to the daemon; see the NAME_request of each verb."""
    type: Literal['control_request']
    request_id: RequestId
    request: Verb


class Answer(TypedDict):
    """The success of a request; `response` is the NAME_answer of its verb."""
    type: Literal['control_response']
    response: Success


class Success(TypedDict):
    subtype: Literal['success']
    request_id: RequestId
    response: NotRequired[Dict[str, Any]]


class Refusal(TypedDict):
    """An error answer of the daemon. One without `code` is the agent's."""
    type: Literal['control_response']
    response: Failure


class Failure(TypedDict):
    subtype: Literal['error']
    request_id: RequestId
    code: Code
    error: str
    ending: NotRequired[bool]
    would_lose: NotRequired[Losses]


class Losses(TypedDict):
    tasks: Tasks
    timers: List[Timer]


class Cancel(TypedDict):
    """A request to this client is over."""
    type: Literal['control_cancel_request']
    request_id: RequestId


class CallQuestion(TypedDict):
    """To approvers: a client runs a tool (mcp_call, bash_command). Other can_use_tool requests are the agent's."""
    type: Literal['control_request']
    request_id: RequestId
    request: CallRequest


class CallRequest(TypedDict):
    subtype: Literal['can_use_tool']
    tool_name: str
    input: Dict[str, Any]
    tool_use_id: str
    permission_suggestions: List[Any]
    description: str
    plenum_by: Present


class JsonrpcCall(TypedDict):
    """A request to the daemon on a JSON-RPC connection: its params are the members of the NAME_request, without `subtype`. codex has no `jsonrpc`."""
    jsonrpc: NotRequired[Literal['2.0']]
    id: RequestId
    method: str
    params: NotRequired[Dict[str, Any]]


class JsonrpcResult(TypedDict):
    """The success of a request on a JSON-RPC connection; `result` is the NAME_answer of its verb."""
    jsonrpc: NotRequired[Literal['2.0']]
    id: RequestId
    result: Dict[str, Any]


class JsonrpcError(TypedDict):
    """An error answer of the daemon on a JSON-RPC connection. One without `data.code` is the agent's. `id` is null if that of the line could not be read."""
    jsonrpc: NotRequired[Literal['2.0']]
    id: Union[str, int, None]
    error: JsonrpcFailure


class JsonrpcFailure(TypedDict):
    code: Literal[-32800, -32700, -32603, -32602, -32601, -32600, -32000]
    message: str
    data: JsonrpcCause


class JsonrpcCause(TypedDict):
    code: Code
    line: NotRequired[int]
    size: NotRequired[int]
    ending: NotRequired[bool]
    would_lose: NotRequired[Losses]


class JsonrpcNotice(TypedDict):
    """An event on a JSON-RPC connection: its params are the members of the NAME_event, without `type` and `subtype`."""
    plenum_seq: NotRequired[int]
    jsonrpc: NotRequired[Literal['2.0']]
    method: Literal['_plenum/event']
    params: Dict[str, Any]


class InitializeNote(TypedDict):
    """`plenum` in the answer to initialize."""
    hooks_applied: NotRequired[Literal[False]]
    reason: NotRequired[str]
    ignored: NotRequired[List[str]]


Verb: TypeAlias = 'Union[PlenumHelloRequest, PlenumAttachRequest, PlenumDetachRequest, PlenumRegisterRequest, PlenumListRequest, PlenumStatusRequest, PlenumPendingRequest, PlenumQueueRequest, PlenumLogsRequest, PlenumStopRequest, PlenumHibernateRequest, PlenumClearLostRequest, PlenumRenameRequest, PlenumSubscribeRequest, PlenumMetricsRequest, PlenumReloadRequest, PlenumUpgradeRequest, PlenumShutdownRequest]'


RequestId: TypeAlias = 'Union[str, int]'


Code: TypeAlias = "Literal['bad_line', 'bad_request', 'not_attached', 'already_attached', 'no_such_session', 'session_exists', 'no_such_profile', 'conversation_in_use', 'spawn_failed', 'not_allowed', 'name_taken', 'bad_name', 'initialize_refused', 'change_refused', 'duplicate_request', 'already_settled', 'unknown_request', 'bad_answer', 'busy', 'timeout', 'child_exited', 'too_long', 'too_many', 'cannot_stop', 'share_exceeded', 'bad_config', 'shutting_down', 'internal', 'invalid_request', 'unknown_method', 'cancelled']"


State: TypeAlias = "Literal['starting', 'idle', 'busy', 'asking', 'asleep', 'failed']"


Role: TypeAlias = "Literal['driver', 'observer']"


Peer: TypeAlias = "Literal['own', 'driver', 'agent', 'observer']"


OnLag: TypeAlias = "Literal['gap', 'close', 'wait']"


Approve: TypeAlias = 'Union[bool, ApproveTools]'


class ApproveTools(TypedDict):
    tools: List[str]


Replay: TypeAlias = "Union[Literal['none', 'all'], ReplayLast, ReplayAfter, ReplayAfterUuid]"


class ReplayLast(TypedDict):
    last: int


class ReplayAfter(TypedDict):
    after: int


class ReplayAfterUuid(TypedDict):
    after_uuid: str


How: TypeAlias = "Literal['graceful', 'kill']"


class Who(TypedDict):
    """A client as the kernel reports it."""
    name: Union[str, None]
    uid: int
    pid: int
    program: str


class Present(Who):
    """A client with its number and its rights in the session."""
    client: int
    role: NotRequired[Role]
    approve: NotRequired[bool]


class ListedClient(Present):
    peer: Peer
    why: NotRequired[str]
    agent_of: NotRequired[str]


class CountedClient(ListedClient):
    bytes_in: int
    bytes_out: int
    lines_in: int
    lag_bytes: int
    lag_ms: int
    held_bytes: int
    requests: int
    session: Union[str, None]


class Sender(TypedDict):
    """The client of a prompt."""
    name: Union[str, None]
    uid: int
    client: int


class PlenumHelloRequest(TypedDict):
    subtype: Literal['plenum_hello']
    name: NotRequired[str]
    protocol: NotRequired[int]


class PlenumHelloAnswer(TypedDict):
    version: str
    protocol: int
    capabilities: List[str]
    limits: Limits
    peer: OwnPeer
    client: int
    socket: str
    default_profile: Union[str, None]
    pid: int


class OwnPeer(TypedDict):
    uid: int
    gid: int
    pid: int
    program: str
    may_approve: bool
    peer: Peer
    why: NotRequired[str]
    agent_of: NotRequired[str]


class Limits(TypedDict):
    child_line: NotRequired[int]
    client_line: NotRequired[int]
    tape_bytes: NotRequired[int]
    tape_lines: NotRequired[int]
    stdin_queue: NotRequired[int]
    max_sessions: NotRequired[int]
    max_children: NotRequired[int]
    max_clients: NotRequired[int]
    max_pending: NotRequired[int]
    max_calls: NotRequired[int]
    outside_timeout: NotRequired[int]
    plenum_timeout_ms: NotRequired[int]
    turn_lines: NotRequired[int]
    turn_bytes: NotRequired[int]
    uid_sessions: NotRequired[int]
    uid_clients: NotRequired[int]
    uid_bytes: NotRequired[int]
    uid_requests: NotRequired[int]
    request: NotRequired[int]
    call: NotRequired[int]
    values: NotRequired[int]
    members: NotRequired[int]
    child_members: NotRequired[int]
    words: NotRequired[int]
    types: NotRequired[int]
    names: NotRequired[int]
    hooks: NotRequired[int]
    hooks_text: NotRequired[int]
    matcher: NotRequired[int]
    initialize: NotRequired[int]
    conversation_id: NotRequired[int]
    prompts: NotRequired[int]
    table: NotRequired[int]
    table_starts: NotRequired[int]
    stdin_lines: NotRequired[int]
    pending_bytes: NotRequired[int]


class PlenumAttachRequest(TypedDict):
    subtype: Literal['plenum_attach']
    session: NotRequired[str]
    create: NotRequired[Literal['auto', 'never', 'new']]
    profile: NotRequired[str]
    cwd: NotRequired[str]
    env: NotRequired[Dict[str, str]]
    args: NotRequired[List[str]]
    resume: NotRequired[str]
    fork: NotRequired[bool]
    role: NotRequired[Role]
    approve: NotRequired[Approve]
    replay: NotRequired[Replay]
    tag: NotRequired[bool]
    types: NotRequired[List[str]]
    partial: NotRequired[bool]
    on_lag: NotRequired[OnLag]
    wake: NotRequired[bool]
    echo: NotRequired[bool]
    name: NotRequired[str]
    argv: NotRequired[List[str]]
    env_only: NotRequired[bool]
    ephemeral: NotRequired[bool]
    quiet: NotRequired[bool]
    mcp_servers: NotRequired[List[str]]
    raw_init: NotRequired[bool]
    deny_asks: NotRequired[bool]
    stderr: NotRequired[bool]


class PlenumAttachAnswer(TypedDict):
    session: str
    created: bool
    conversation_id: Union[str, None]
    state: State
    profile: str
    dialect: str
    cwd: Union[str, None]
    pid: Union[int, None]
    seq: int
    oldest_seq: int
    replay_cut: bool
    pending: List[str]
    attachments: List[ListedClient]
    attachments_total: int
    protocol: int
    role: Role
    approve: bool
    client: int
    peer: Peer
    why: NotRequired[str]
    agent_of: NotRequired[str]
    guards_lost: NotRequired[Literal[True]]
    ignored: NotRequired[List[str]]
    ignored_why: NotRequired[str]
    version: NotRequired[str]
    program: NotRequired[str]
    permission_mode: NotRequired[Union[str, None]]
    model: NotRequired[Union[str, None]]
    background_tasks: NotRequired[Tasks]
    timers: NotRequired[List[Timer]]
    init_seq: NotRequired[Union[int, None]]
    init: NotRequired[Union[Dict[str, Any], None]]


# The agent's list of background tasks, unchanged; null: too long to keep.
Tasks: TypeAlias = 'Union[List[Dict[str, Any]], None]'


class Timer(TypedDict):
    id: Union[str, None]
    schedule: Union[str, None]
    prompt: Union[str, None]
    recurring: bool
    due_ms: int
    until_ms: int


class PlenumDetachRequest(TypedDict):
    subtype: Literal['plenum_detach']


class PlenumDetachAnswer(TypedDict):
    session: str


class PlenumRegisterRequest(TypedDict):
    subtype: Literal['plenum_register']
    role: NotRequired[Role]
    approve: NotRequired[Approve]
    tag: NotRequired[bool]
    types: NotRequired[List[str]]
    partial: NotRequired[bool]
    echo: NotRequired[bool]
    on_lag: NotRequired[OnLag]
    name: NotRequired[str]


class PlenumRegisterAnswer(TypedDict):
    session: str
    role: Role
    approve: bool


class PlenumListRequest(TypedDict):
    subtype: Literal['plenum_list']


class PlenumListAnswer(TypedDict):
    sessions: List[ListedSession]


class Session(TypedDict):
    session: str
    state: State
    profile: str
    dialect: str
    cwd: Union[str, None]
    program: Union[str, None]
    conversation_id: Union[str, None]
    attachments: int
    pending: int
    seq: int
    created_ms: int
    idle_ms: int
    uid: int
    permission_mode: NotRequired[Union[str, None]]
    model: NotRequired[Union[str, None]]
    version: Union[str, None]
    reason: Union[str, None]
    pid: Union[int, None]
    resumed_id: NotRequired[str]
    guards_lost: NotRequired[Literal[True]]
    guards_away: NotRequired[Literal[True]]


class ListedSession(Session):
    tasks: int
    timers: int
    leftovers: int


class PlenumStatusRequest(TypedDict):
    subtype: Literal['plenum_status']
    session: NotRequired[str]
    profile: NotRequired[str]
    daemon: NotRequired[bool]


PlenumStatusAnswer: TypeAlias = 'Union[SessionStatus, ProfileStatus, DaemonStatus]'


_ProfileStatus = TypedDict('_ProfileStatus', {
    'profile': 'str',
    'program': 'Union[str, None]',
    'from': 'Union[str, None]',
    'error': 'Union[str, None]',
})


class ProfileStatus(_ProfileStatus):
    pass


class SessionStatus(Session):
    oldest_seq: int
    tape_bytes: int
    tape_lines: int
    stdin_queue: int
    lines_out: int
    bytes_out: int
    stray_lines: int
    dropped_answers: int
    turns: int
    calls: int
    hooks: int
    output_ms: NotRequired[int]
    child_rss: NotRequired[int]
    cost_usd: Union[float, None]
    prompts: List[Prompt]
    guards: List[Guard]
    tasks: Tasks
    timers: List[Timer]
    leftovers: List[Leftover]
    clients: List[CountedClient]


class DaemonStatus(TypedDict):
    version: str
    pid: int
    socket: str
    state_dir: Union[str, None]
    default_profile: Union[str, None]
    started_ms: int
    sessions: int
    decisions: int
    bad_lines: int
    rss: int
    clients: List[CountedClient]
    profiles: List[Profile]
    limits: Limits
    leftovers: List[Leftover]
    shares: List[Share]
    guards_lost: NotRequired[Literal[True]]


class Prompt(Sender):
    uuid: str
    state: Literal['held', 'sent', 'taken', 'done']
    since_ms: int


class Guard(TypedDict):
    event: Union[str, None]
    matcher: Union[str, None]
    name: Union[str, None]
    uid: int
    here: bool
    client: NotRequired[int]


class Leftover(TypedDict):
    pid: int
    program: str
    since_ms: int
    session: NotRequired[Union[str, None]]


class Profile(TypedDict):
    name: str
    dialect: str
    program: Union[str, None]
    private: bool
    warm: int
    warm_wanted: int


class Share(TypedDict):
    uid: int
    limited: bool
    sessions: int
    clients: int
    bytes: int
    requests: int


class PlenumPendingRequest(TypedDict):
    subtype: Literal['plenum_pending']
    session: NotRequired[str]


class PlenumPendingAnswer(TypedDict):
    pending: List[OpenRequest]


class OpenRequest(TypedDict):
    session: str
    request_id: str
    subtype: Union[str, None]
    tool_name: Union[str, None]
    input: NotRequired[Any]
    summary: NotRequired[Union[str, None]]
    suggestions: NotRequired[List[Any]]
    agent_id: Union[str, None]
    since_ms: int
    asked_at_ms: int
    asked: List[ListedClient]
    asked_total: int


class PlenumQueueRequest(TypedDict):
    subtype: Literal['plenum_queue']
    session: NotRequired[str]


class PlenumQueueAnswer(TypedDict):
    session: str
    prompts: List[Prompt]


class PlenumLogsRequest(TypedDict):
    subtype: Literal['plenum_logs']
    session: NotRequired[str]


class PlenumLogsAnswer(TypedDict):
    session: str
    stderr: List[str]
    reason: Union[str, None]


class PlenumStopRequest(TypedDict):
    subtype: Literal['plenum_stop']
    session: NotRequired[str]
    how: NotRequired[How]
    forget: NotRequired[bool]


class Stopping(TypedDict):
    session: str
    stopping: bool
    leftovers: List[Leftover]
    end_leftovers: bool


class PlenumStopAnswer(Stopping):
    forget: bool


class PlenumHibernateRequest(TypedDict):
    subtype: Literal['plenum_hibernate']
    session: NotRequired[str]
    force: NotRequired[bool]


class PlenumHibernateAnswer(Stopping):
    state: State


class PlenumClearLostRequest(TypedDict):
    subtype: Literal['plenum_clear_lost']
    session: NotRequired[str]
    daemon: NotRequired[bool]


class PlenumClearLostAnswer(TypedDict):
    cleared: List[str]
    daemon: bool


class PlenumRenameRequest(TypedDict):
    subtype: Literal['plenum_rename']
    session: NotRequired[str]
    name: str


class PlenumRenameAnswer(TypedDict):
    session: str
    previous: str


class PlenumSubscribeRequest(TypedDict):
    subtype: Literal['plenum_subscribe']
    off: NotRequired[bool]


class PlenumSubscribeAnswer(PlenumListAnswer):
    subscribed: bool


class PlenumMetricsRequest(TypedDict):
    subtype: Literal['plenum_metrics']


class PlenumMetricsAnswer(TypedDict):
    sessions: int
    children: int
    warm: int
    clients: int
    clients_seen: int
    attachments: int
    pending: int
    decisions: int
    bad_lines: int
    lines_out: int
    bytes_out: int
    stray_lines: int
    dropped_answers: int
    turns: int
    tape_bytes: int
    rss: int
    loop_turns: int
    turn_longest_us: int
    turn_p99_us: int
    held_bytes: int
    requests: int
    share_exceeded: int


class PlenumReloadRequest(TypedDict):
    subtype: Literal['plenum_reload']


class PlenumReloadAnswer(TypedDict):
    reloaded: Literal[True]


class PlenumUpgradeRequest(TypedDict):
    subtype: Literal['plenum_upgrade']


class PlenumUpgradeAnswer(TypedDict):
    upgraded: Literal[True]
    version: str


class PlenumShutdownRequest(TypedDict):
    subtype: Literal['plenum_shutdown']
    how: NotRequired[How]


class PlenumShutdownAnswer(TypedDict):
    shutting_down: Literal[True]


Event: TypeAlias = 'Union[SessionCreatedEvent, SessionStateEvent, ChildExitedEvent, SessionRemovedEvent, AttachedEvent, DetachedEvent, SettledEvent, OwnerGoneEvent, OwnerBackEvent, ChangedEvent, TurnStartedEvent, TurnEndedEvent, FailedEvent, StalledEvent, ResumedEvent, StrayOutputEvent, LagEvent, GapEvent, ErrorEvent, ShuttingDownEvent, LeftoversEvent, AttentionEvent, StderrEvent]'


class Notice(TypedDict):
    """What all events have."""
    plenum_seq: NotRequired[int]
    type: Literal['system']
    subtype: Literal['plenum_event']


class SessionNotice(Notice):
    session: str


class SessionCreatedEvent(SessionNotice):
    event: Literal['session_created']
    profile: str
    cwd: Union[str, None]


class SessionStateEvent(SessionNotice):
    event: Literal['session_state']
    state: State
    previous: State
    conversation_id: NotRequired[str]
    resumed: NotRequired[str]
    reason: NotRequired[str]


class ChildExitedEvent(SessionNotice):
    event: Literal['child_exited']
    status: int
    signal: Union[int, None]
    stderr: List[str]
    wanted: bool
    reason: NotRequired[str]
    stopped: NotRequired[Literal[True]]


class SessionRemovedEvent(SessionNotice):
    event: Literal['session_removed']
    reason: str


class AttachedEvent(SessionNotice):
    event: Literal['attached']
    client: Present


class DetachedEvent(SessionNotice):
    event: Literal['detached']
    client: Present
    reason: NotRequired[str]


class SettledEvent(SessionNotice):
    event: Literal['settled']
    request_id: str
    decision: Literal['allow', 'deny', 'error', 'accept', 'decline', 'cancel', 'completed', 'cancelled', 'answered', 'timeout', 'child_exited', 'passed']
    by: Who
    ms: int
    request_subtype: NotRequired[str]
    tool_name: NotRequired[str]
    reason: NotRequired[str]
    input_changed: NotRequired[Literal[True]]
    permissions: NotRequired[List[str]]


class OwnerNotice(SessionNotice):
    name: Union[str, None]
    uid: int
    guards: bool
    servers: List[str]


class OwnerGoneEvent(OwnerNotice):
    event: Literal['owner_gone']


class OwnerBackEvent(OwnerNotice):
    event: Literal['owner_back']


class ChangedEvent(SessionNotice):
    event: Literal['changed']
    what: str
    value: Any
    was: NotRequired[Any]
    name: NotRequired[str]
    to: NotRequired[Any]
    by: NotRequired[Who]


class TurnNotice(SessionNotice):
    uuids: List[str]
    clients: List[Sender]


class TurnStartedEvent(TurnNotice):
    event: Literal['turn_started']


class TurnEndedEvent(TurnNotice):
    event: Literal['turn_ended']
    is_error: NotRequired[bool]
    outcome: NotRequired[Literal['success', 'error', 'limit', 'interrupted', 'unknown']]
    ms: NotRequired[Union[int, None]]
    cost_usd: NotRequired[Union[float, None]]
    tokens: NotRequired[Tokens]


class Tokens(TypedDict):
    input: Union[int, None]
    output: Union[int, None]
    cache_read: Union[int, None]
    cache_write: Union[int, None]


class FailedEvent(SessionNotice):
    event: Literal['failed']
    reason: str


class StalledEvent(SessionNotice):
    event: Literal['stalled']
    since: int
    last: Union[str, None]
    open_tool: Union[str, None]


class ResumedEvent(SessionNotice):
    event: Literal['resumed']


class StrayOutputEvent(SessionNotice):
    event: Literal['stray_output']
    text: str
    size: NotRequired[int]


class LagEvent(SessionNotice):
    event: Literal['lag']
    client: Present
    bytes: int
    ms: int


_GapEvent = TypedDict('_GapEvent', {
    'event': "Literal['gap']",
    'from': 'int',
    'to': 'int',
})


class GapEvent(SessionNotice, _GapEvent):
    pass


class ErrorEvent(Notice):
    event: Literal['error']
    session: NotRequired[str]
    code: Code
    error: str
    line: NotRequired[int]
    request_id: NotRequired[RequestId]
    size: NotRequired[int]
    uuid: NotRequired[str]


class ShuttingDownEvent(Notice):
    event: Literal['shutting_down']


class LeftoversEvent(SessionNotice):
    event: Literal['leftovers']
    action: Literal['kept', 'ending', 'killed']
    count: int
    processes: List[LeftProcess]


class LeftProcess(TypedDict):
    pid: int
    program: str


class AttentionEvent(SessionNotice):
    event: Literal['attention']
    request_id: str
    request_subtype: str
    tool_name: NotRequired[str]
    summary: Union[str, None]
    asked: int


class StderrEvent(SessionNotice):
    event: Literal['stderr']
    data: str
