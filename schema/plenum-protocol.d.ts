// SPDX-License-Identifier: MIT
// Written by schema/generate.py from plenum-protocol.schema.json; plenum-protocol(7) has the meaning.

/** A request to the daemon; see the NAME_request of each verb. */
export interface Request {
  type: "control_request";
  request_id: RequestId;
  request: Verb;
}

/** The success of a request; `response` is the NAME_answer of its verb. */
export interface Answer {
  type: "control_response";
  response: Success;
}

export interface Success {
  subtype: "success";
  request_id: RequestId;
  response?: Record<string, unknown>;
}

/** An error answer of the daemon. One without `code` is the agent's. */
export interface Refusal {
  type: "control_response";
  response: Failure;
}

export interface Failure {
  subtype: "error";
  request_id: RequestId;
  code: Code;
  error: string;
  /** conversation_in_use: the other session ends soon */
  ending?: boolean;
  /** busy, of plenum_hibernate */
  would_lose?: Losses;
}

export interface Losses {
  tasks: Tasks;
  timers: Array<Timer>;
}

/** A request to this client is over. */
export interface Cancel {
  type: "control_cancel_request";
  request_id: RequestId;
}

/** To approvers: a client runs a tool (mcp_call, bash_command). Other can_use_tool requests are the agent's. */
export interface CallQuestion {
  type: "control_request";
  request_id: RequestId;
  request: CallRequest;
}

export interface CallRequest {
  subtype: "can_use_tool";
  tool_name: string;
  input: Record<string, unknown>;
  tool_use_id: string;
  permission_suggestions: Array<unknown>;
  description: string;
  plenum_by: Present;
}

/** A request to the daemon on a JSON-RPC connection: its params are the members of the NAME_request, without `subtype`. codex has no `jsonrpc`. */
export interface JsonrpcCall {
  jsonrpc?: "2.0";
  id: RequestId;
  /** _plenum/NAME, for the verb plenum_NAME */
  method: string;
  params?: Record<string, unknown>;
}

/** The success of a request on a JSON-RPC connection; `result` is the NAME_answer of its verb. */
export interface JsonrpcResult {
  jsonrpc?: "2.0";
  id: RequestId;
  result: Record<string, unknown>;
}

/** An error answer of the daemon on a JSON-RPC connection. One without `data.code` is the agent's. `id` is null if that of the line could not be read. */
export interface JsonrpcError {
  jsonrpc?: "2.0";
  id: string | number | null;
  error: JsonrpcFailure;
}

export interface JsonrpcFailure {
  code: -32800 | -32700 | -32603 | -32602 | -32601 | -32600 | -32000;
  message: string;
  data: JsonrpcCause;
}

export interface JsonrpcCause {
  code: Code;
  /** with `id` null: the number of the line on this connection */
  line?: number;
  /** of a line that is too long */
  size?: number;
  /** conversation_in_use: the other session ends soon */
  ending?: boolean;
  /** busy, of _plenum/hibernate */
  would_lose?: Losses;
}

/** An event on a JSON-RPC connection: its params are the members of the NAME_event, without `type` and `subtype`. */
export interface JsonrpcNotice {
  /** with `tag`, of lines on the tape */
  plenum_seq?: number;
  jsonrpc?: "2.0";
  method: "_plenum/event";
  params: Record<string, unknown>;
}

/** `plenum` in the answer to initialize. */
export interface InitializeNote {
  hooks_applied?: false;
  reason?: string;
  ignored?: Array<string>;
}

export type Verb = PlenumHelloRequest | PlenumAttachRequest | PlenumDetachRequest | PlenumRegisterRequest | PlenumListRequest | PlenumStatusRequest | PlenumPendingRequest | PlenumQueueRequest | PlenumLogsRequest | PlenumStopRequest | PlenumHibernateRequest | PlenumClearLostRequest | PlenumRenameRequest | PlenumSubscribeRequest | PlenumMetricsRequest | PlenumReloadRequest | PlenumUpgradeRequest | PlenumShutdownRequest;

export type RequestId = string | number;

export type Code = "bad_line" | "bad_request" | "not_attached" | "already_attached" | "no_such_session" | "session_exists" | "no_such_profile" | "conversation_in_use" | "spawn_failed" | "not_allowed" | "name_taken" | "bad_name" | "initialize_refused" | "change_refused" | "duplicate_request" | "already_settled" | "unknown_request" | "bad_answer" | "busy" | "timeout" | "child_exited" | "too_long" | "too_many" | "cannot_stop" | "share_exceeded" | "bad_config" | "shutting_down" | "internal" | "invalid_request" | "unknown_method" | "cancelled";

export type State = "starting" | "idle" | "busy" | "asking" | "asleep" | "failed";

export type Role = "driver" | "observer";

export type Peer = "own" | "driver" | "agent" | "observer";

export type OnLag = "gap" | "close" | "wait";

export type Approve = boolean | ApproveTools;

export interface ApproveTools {
  tools: Array<string>;
}

export type Replay = "none" | "all" | ReplayLast | ReplayAfter | ReplayAfterUuid;

export interface ReplayLast {
  last: number;
}

export interface ReplayAfter {
  after: number;
}

export interface ReplayAfterUuid {
  after_uuid: string;
}

export type How = "graceful" | "kill";

/** A client as the kernel reports it. */
export interface Who {
  name: string | null;
  uid: number;
  pid: number;
  program: string;
}

/** A client with its number and its rights in the session. */
export interface Present extends Who {
  client: number;
  role?: Role;
  approve?: boolean;
}

export interface ListedClient extends Present {
  peer: Peer;
  why?: string;
  agent_of?: string;
}

export interface CountedClient extends ListedClient {
  bytes_in: number;
  bytes_out: number;
  lines_in: number;
  lag_bytes: number;
  lag_ms: number;
  held_bytes: number;
  requests: number;
  session: string | null;
}

/** The client of a prompt. */
export interface Sender {
  name: string | null;
  uid: number;
  client: number;
}

export interface PlenumHelloRequest {
  subtype: "plenum_hello";
  name?: string;
  protocol?: number;
}

export interface PlenumHelloAnswer {
  version: string;
  protocol: number;
  capabilities: Array<string>;
  limits: Limits;
  peer: OwnPeer;
  client: number;
  socket: string;
  default_profile: string | null;
  pid: number;
}

export interface OwnPeer {
  uid: number;
  gid: number;
  pid: number;
  program: string;
  may_approve: boolean;
  peer: Peer;
  why?: string;
  agent_of?: string;
}

export interface Limits {
  child_line?: number;
  client_line?: number;
  tape_bytes?: number;
  tape_lines?: number;
  stdin_queue?: number;
  max_sessions?: number;
  max_children?: number;
  max_clients?: number;
  max_pending?: number;
  max_calls?: number;
  outside_timeout?: number;
  plenum_timeout_ms?: number;
  turn_lines?: number;
  turn_bytes?: number;
  uid_sessions?: number;
  uid_clients?: number;
  uid_bytes?: number;
  uid_requests?: number;
  request?: number;
  call?: number;
  values?: number;
  members?: number;
  child_members?: number;
  words?: number;
  types?: number;
  names?: number;
  hooks?: number;
  hooks_text?: number;
  matcher?: number;
  initialize?: number;
  conversation_id?: number;
  prompts?: number;
  table?: number;
  table_starts?: number;
  stdin_lines?: number;
  pending_bytes?: number;
}

export interface PlenumAttachRequest {
  subtype: "plenum_attach";
  session?: string;
  create?: "auto" | "never" | "new";
  profile?: string;
  cwd?: string;
  env?: Record<string, string>;
  args?: Array<string>;
  resume?: string;
  fork?: boolean;
  role?: Role;
  approve?: Approve;
  replay?: Replay;
  tag?: boolean;
  types?: Array<string>;
  partial?: boolean;
  on_lag?: OnLag;
  wake?: boolean;
  echo?: boolean;
  name?: string;
  argv?: Array<string>;
  env_only?: boolean;
  ephemeral?: boolean;
  quiet?: boolean;
  mcp_servers?: Array<string>;
  raw_init?: boolean;
  deny_asks?: boolean;
  stderr?: boolean;
}

export interface PlenumAttachAnswer {
  session: string;
  created: boolean;
  conversation_id: string | null;
  state: State;
  profile: string;
  dialect: string;
  cwd: string | null;
  pid: number | null;
  seq: number;
  oldest_seq: number;
  replay_cut: boolean;
  pending: Array<string>;
  attachments: Array<ListedClient>;
  attachments_total: number;
  protocol: number;
  role: Role;
  approve: boolean;
  client: number;
  peer: Peer;
  why?: string;
  agent_of?: string;
  guards_lost?: true;
  ignored?: Array<string>;
  ignored_why?: string;
  version?: string;
  program?: string;
  permission_mode?: string | null;
  model?: string | null;
  background_tasks?: Tasks;
  timers?: Array<Timer>;
  init_seq?: number | null;
  /** the agent's system/init line */
  init?: Record<string, unknown> | null;
}

/** The agent's list of background tasks, unchanged; null: too long to keep. */
export type Tasks = Array<Record<string, unknown>> | null;

export interface Timer {
  id: string | null;
  schedule: string | null;
  prompt: string | null;
  recurring: boolean;
  due_ms: number;
  until_ms: number;
}

export interface PlenumDetachRequest {
  subtype: "plenum_detach";
}

export interface PlenumDetachAnswer {
  session: string;
}

export interface PlenumRegisterRequest {
  subtype: "plenum_register";
  role?: Role;
  approve?: Approve;
  tag?: boolean;
  types?: Array<string>;
  partial?: boolean;
  echo?: boolean;
  on_lag?: OnLag;
  name?: string;
}

export interface PlenumRegisterAnswer {
  session: string;
  role: Role;
  approve: boolean;
}

export interface PlenumListRequest {
  subtype: "plenum_list";
}

export interface PlenumListAnswer {
  sessions: Array<ListedSession>;
}

export interface Session {
  session: string;
  state: State;
  profile: string;
  dialect: string;
  cwd: string | null;
  program: string | null;
  conversation_id: string | null;
  attachments: number;
  pending: number;
  seq: number;
  created_ms: number;
  idle_ms: number;
  uid: number;
  permission_mode?: string | null;
  model?: string | null;
  version: string | null;
  reason: string | null;
  pid: number | null;
  resumed_id?: string;
  guards_lost?: true;
  guards_away?: true;
}

export interface ListedSession extends Session {
  tasks: number;
  timers: number;
  leftovers: number;
}

export interface PlenumStatusRequest {
  subtype: "plenum_status";
  session?: string;
  profile?: string;
  daemon?: boolean;
}

export type PlenumStatusAnswer = SessionStatus | ProfileStatus | DaemonStatus;

export interface ProfileStatus {
  profile: string;
  program: string | null;
  from: string | null;
  error: string | null;
}

export interface SessionStatus extends Session {
  oldest_seq: number;
  tape_bytes: number;
  tape_lines: number;
  stdin_queue: number;
  lines_out: number;
  bytes_out: number;
  stray_lines: number;
  dropped_answers: number;
  turns: number;
  calls: number;
  hooks: number;
  output_ms?: number;
  child_rss?: number;
  cost_usd: number | null;
  prompts: Array<Prompt>;
  guards: Array<Guard>;
  tasks: Tasks;
  timers: Array<Timer>;
  leftovers: Array<Leftover>;
  clients: Array<CountedClient>;
}

export interface DaemonStatus {
  version: string;
  pid: number;
  socket: string;
  state_dir: string | null;
  default_profile: string | null;
  started_ms: number;
  sessions: number;
  decisions: number;
  bad_lines: number;
  rss: number;
  clients: Array<CountedClient>;
  profiles: Array<Profile>;
  limits: Limits;
  leftovers: Array<Leftover>;
  shares: Array<Share>;
  guards_lost?: true;
}

export interface Prompt extends Sender {
  uuid: string;
  state: "held" | "sent" | "taken" | "done";
  since_ms: number;
}

export interface Guard {
  event: string | null;
  matcher: string | null;
  name: string | null;
  uid: number;
  here: boolean;
  client?: number;
}

export interface Leftover {
  pid: number;
  program: string;
  since_ms: number;
  /** of plenum_status of the daemon */
  session?: string | null;
}

export interface Profile {
  name: string;
  dialect: string;
  program: string | null;
  private: boolean;
  warm: number;
  warm_wanted: number;
}

export interface Share {
  uid: number;
  limited: boolean;
  sessions: number;
  clients: number;
  bytes: number;
  requests: number;
}

export interface PlenumPendingRequest {
  subtype: "plenum_pending";
  session?: string;
}

export interface PlenumPendingAnswer {
  pending: Array<OpenRequest>;
}

export interface OpenRequest {
  session: string;
  request_id: string;
  subtype: string | null;
  tool_name: string | null;
  /** the agent's; a long one is a string with its beginning */
  input?: unknown;
  /** instead of an input: the text of a form or dialog */
  summary?: string | null;
  /** the agent's permission_suggestions */
  suggestions?: Array<unknown>;
  agent_id: string | null;
  since_ms: number;
  asked_at_ms: number;
  /** some of the clients that were asked, if there are many */
  asked: Array<ListedClient>;
  asked_total: number;
}

export interface PlenumQueueRequest {
  subtype: "plenum_queue";
  session?: string;
}

export interface PlenumQueueAnswer {
  session: string;
  prompts: Array<Prompt>;
}

export interface PlenumLogsRequest {
  subtype: "plenum_logs";
  session?: string;
}

export interface PlenumLogsAnswer {
  session: string;
  stderr: Array<string>;
  reason: string | null;
}

export interface PlenumStopRequest {
  subtype: "plenum_stop";
  session?: string;
  how?: How;
  forget?: boolean;
}

export interface Stopping {
  session: string;
  stopping: boolean;
  leftovers: Array<Leftover>;
  end_leftovers: boolean;
}

export interface PlenumStopAnswer extends Stopping {
  forget: boolean;
}

export interface PlenumHibernateRequest {
  subtype: "plenum_hibernate";
  session?: string;
  force?: boolean;
}

export interface PlenumHibernateAnswer extends Stopping {
  state: State;
}

export interface PlenumClearLostRequest {
  subtype: "plenum_clear_lost";
  session?: string;
  daemon?: boolean;
}

export interface PlenumClearLostAnswer {
  cleared: Array<string>;
  daemon: boolean;
}

export interface PlenumRenameRequest {
  subtype: "plenum_rename";
  session?: string;
  name: string;
}

export interface PlenumRenameAnswer {
  session: string;
  previous: string;
}

export interface PlenumSubscribeRequest {
  subtype: "plenum_subscribe";
  off?: boolean;
}

export interface PlenumSubscribeAnswer extends PlenumListAnswer {
  subscribed: boolean;
}

export interface PlenumMetricsRequest {
  subtype: "plenum_metrics";
}

export interface PlenumMetricsAnswer {
  sessions: number;
  children: number;
  warm: number;
  clients: number;
  clients_seen: number;
  attachments: number;
  pending: number;
  decisions: number;
  bad_lines: number;
  lines_out: number;
  bytes_out: number;
  stray_lines: number;
  dropped_answers: number;
  turns: number;
  tape_bytes: number;
  rss: number;
  loop_turns: number;
  turn_longest_us: number;
  turn_p99_us: number;
  held_bytes: number;
  requests: number;
  share_exceeded: number;
}

export interface PlenumReloadRequest {
  subtype: "plenum_reload";
}

export interface PlenumReloadAnswer {
  reloaded: true;
}

export interface PlenumUpgradeRequest {
  subtype: "plenum_upgrade";
}

export interface PlenumUpgradeAnswer {
  upgraded: true;
  version: string;
}

export interface PlenumShutdownRequest {
  subtype: "plenum_shutdown";
  how?: How;
}

export interface PlenumShutdownAnswer {
  shutting_down: true;
}

export type Event = SessionCreatedEvent | SessionStateEvent | ChildExitedEvent | SessionRemovedEvent | AttachedEvent | DetachedEvent | SettledEvent | OwnerGoneEvent | OwnerBackEvent | ChangedEvent | TurnStartedEvent | TurnEndedEvent | FailedEvent | StalledEvent | ResumedEvent | StrayOutputEvent | LagEvent | GapEvent | ErrorEvent | ShuttingDownEvent | LeftoversEvent | AttentionEvent | StderrEvent;

/** What all events have. */
export interface Notice {
  /** with `tag`, of events on the tape */
  plenum_seq?: number;
  type: "system";
  subtype: "plenum_event";
}

export interface SessionNotice extends Notice {
  session: string;
}

export interface SessionCreatedEvent extends SessionNotice {
  event: "session_created";
  profile: string;
  cwd: string | null;
}

export interface SessionStateEvent extends SessionNotice {
  event: "session_state";
  state: State;
  previous: State;
  conversation_id?: string;
  resumed?: string;
  reason?: string;
}

export interface ChildExitedEvent extends SessionNotice {
  event: "child_exited";
  status: number;
  signal: number | null;
  stderr: Array<string>;
  wanted: boolean;
  reason?: string;
  stopped?: true;
}

export interface SessionRemovedEvent extends SessionNotice {
  event: "session_removed";
  reason: string;
}

export interface AttachedEvent extends SessionNotice {
  event: "attached";
  client: Present;
}

export interface DetachedEvent extends SessionNotice {
  event: "detached";
  client: Present;
  reason?: string;
}

export interface SettledEvent extends SessionNotice {
  event: "settled";
  request_id: string;
  decision: "allow" | "deny" | "error" | "accept" | "decline" | "cancel" | "completed" | "cancelled" | "answered" | "timeout" | "child_exited" | "passed";
  by: Who;
  ms: number;
  request_subtype?: string;
  tool_name?: string;
  reason?: string;
  input_changed?: true;
  permissions?: Array<string>;
}

export interface OwnerNotice extends SessionNotice {
  name: string | null;
  uid: number;
  guards: boolean;
  servers: Array<string>;
}

export interface OwnerGoneEvent extends OwnerNotice {
  event: "owner_gone";
}

export interface OwnerBackEvent extends OwnerNotice {
  event: "owner_back";
}

export interface ChangedEvent extends SessionNotice {
  event: "changed";
  what: string;
  /** any JSON value */
  value: unknown;
  /** of `uuid`: the uuid that the client sent */
  was?: unknown;
  /** of `config_option`: its name for users */
  name?: string;
  /** of `config_option`: its new value */
  to?: unknown;
  by?: Who;
}

export interface TurnNotice extends SessionNotice {
  uuids: Array<string>;
  clients: Array<Sender>;
}

export interface TurnStartedEvent extends TurnNotice {
  event: "turn_started";
}

export interface TurnEndedEvent extends TurnNotice {
  event: "turn_ended";
  is_error?: boolean;
  outcome?: "success" | "error" | "limit" | "interrupted" | "unknown";
  ms?: number | null;
  cost_usd?: number | null;
  tokens?: Tokens;
}

export interface Tokens {
  input: number | null;
  output: number | null;
  cache_read: number | null;
  cache_write: number | null;
}

export interface FailedEvent extends SessionNotice {
  event: "failed";
  reason: string;
}

export interface StalledEvent extends SessionNotice {
  event: "stalled";
  since: number;
  last: string | null;
  open_tool: string | null;
}

export interface ResumedEvent extends SessionNotice {
  event: "resumed";
}

export interface StrayOutputEvent extends SessionNotice {
  event: "stray_output";
  text: string;
  size?: number;
}

export interface LagEvent extends SessionNotice {
  event: "lag";
  client: Present;
  bytes: number;
  ms: number;
}

export interface GapEvent extends SessionNotice {
  event: "gap";
  from: number;
  to: number;
}

export interface ErrorEvent extends Notice {
  event: "error";
  session?: string;
  code: Code;
  error: string;
  line?: number;
  request_id?: RequestId;
  size?: number;
  uuid?: string;
}

export interface ShuttingDownEvent extends Notice {
  event: "shutting_down";
}

export interface LeftoversEvent extends SessionNotice {
  event: "leftovers";
  action: "kept" | "ending" | "killed";
  count: number;
  processes: Array<LeftProcess>;
}

export interface LeftProcess {
  pid: number;
  program: string;
}

export interface AttentionEvent extends SessionNotice {
  event: "attention";
  request_id: string;
  request_subtype: string;
  tool_name?: string;
  summary: string | null;
  asked: number;
}

export interface StderrEvent extends SessionNotice {
  event: "stderr";
  data: string;
}

/** Each verb with its request and its answer. */
export interface Verbs {
  plenum_hello: { request: PlenumHelloRequest; answer: PlenumHelloAnswer };
  plenum_attach: { request: PlenumAttachRequest; answer: PlenumAttachAnswer };
  plenum_detach: { request: PlenumDetachRequest; answer: PlenumDetachAnswer };
  plenum_register: { request: PlenumRegisterRequest; answer: PlenumRegisterAnswer };
  plenum_list: { request: PlenumListRequest; answer: PlenumListAnswer };
  plenum_status: { request: PlenumStatusRequest; answer: PlenumStatusAnswer };
  plenum_pending: { request: PlenumPendingRequest; answer: PlenumPendingAnswer };
  plenum_queue: { request: PlenumQueueRequest; answer: PlenumQueueAnswer };
  plenum_logs: { request: PlenumLogsRequest; answer: PlenumLogsAnswer };
  plenum_stop: { request: PlenumStopRequest; answer: PlenumStopAnswer };
  plenum_hibernate: { request: PlenumHibernateRequest; answer: PlenumHibernateAnswer };
  plenum_clear_lost: { request: PlenumClearLostRequest; answer: PlenumClearLostAnswer };
  plenum_rename: { request: PlenumRenameRequest; answer: PlenumRenameAnswer };
  plenum_subscribe: { request: PlenumSubscribeRequest; answer: PlenumSubscribeAnswer };
  plenum_metrics: { request: PlenumMetricsRequest; answer: PlenumMetricsAnswer };
  plenum_reload: { request: PlenumReloadRequest; answer: PlenumReloadAnswer };
  plenum_upgrade: { request: PlenumUpgradeRequest; answer: PlenumUpgradeAnswer };
  plenum_shutdown: { request: PlenumShutdownRequest; answer: PlenumShutdownAnswer };
}
