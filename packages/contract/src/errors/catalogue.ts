/**
 * Every error code of the service, each with its status and a default sentence that tells the caller what to do.
 * Codes are stable: clients match on them. A title names the class of problem and does not depend on the request.
 */

import { AGENTS } from '../agents.ts';
import { LIMITS } from '../limits.ts';
import { SESSION_TEMPLATES, TEMPLATES } from '../templates.ts';

const DISJUNCTION = new Intl.ListFormat('en-GB', { type: 'disjunction' });

interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** For what passes by itself: the seconds until another try may succeed, which the response names in Retry-After. */
  readonly retryAfterSeconds?: number | undefined;
}

const GENERAL = {
  bad_request: entry(400, 'Bad request', 'Send a well-formed HTTP/1.1 request.'),
  invalid_url: entry(400, 'Invalid URL', 'Percent-encode the URL as UTF-8.'),
  invalid_json: entry(400, 'Malformed JSON', 'Send a body that is one valid JSON value.'),
  validation_failed: entry(400, 'Invalid request', 'Correct the fields listed in `errors`.'),
  unauthorized: entry(401, 'Unauthorized', 'Send a valid credential as `Authorization: Bearer …`.'),
  route_not_found: entry(404, 'No such route', 'Check the path against /openapi.json.'),
  method_not_allowed: entry(405, 'Method not allowed', 'Use a method named in the Allow header.'),
  request_timeout: entry(408, 'Request timeout', 'Send the whole request without long pauses.'),
  payload_too_large: entry(413, 'Payload too large', 'Send a smaller request body.'),
  unsupported_media_type: entry(
    415,
    'Unsupported media type',
    'Set the Content-Type that this route documents.',
  ),
  rate_limited: entry(
    429,
    'Too many requests',
    'Wait as long as Retry-After says, then try again.',
    5,
  ),
  headers_too_large: entry(431, 'Headers too large', 'Send fewer or shorter request headers.'),
  internal_error: entry(
    500,
    'Internal error',
    'Try again; if it persists, report the request_id to the operator.',
  ),
  database_unavailable: entry(503, 'Database unavailable', 'Try again in a moment.', 1),
  shutting_down: entry(503, 'Shutting down', 'Try again in a moment.', 1),
} as const;

const IDEMPOTENCY = {
  idempotency_key_invalid: entry(
    400,
    'Invalid idempotency key',
    'Send an Idempotency-Key of 1 to 255 visible ASCII characters.',
  ),
  idempotency_key_reused: entry(
    409,
    'Idempotency key reused',
    'This Idempotency-Key was used with another body; choose a new key.',
  ),
  idempotency_in_progress: entry(
    409,
    'Request in progress',
    'The first request with this Idempotency-Key is still running; try again when it has ended.',
    1,
  ),
} as const;

const SANDBOX_CREATE = {
  unknown_template: entry(
    501,
    'Unknown template',
    `Use one of the templates: ${TEMPLATES.join(', ')}.`,
  ),
  unknown_agent: entry(501, 'Unknown agent', `Use one of the agents: ${AGENTS.join(', ')}.`),
  llm_key_required: entry(400, 'LLM key required', 'Send `llm_key` together with `agent`.'),
  model_required: entry(400, 'Model required', 'Send `model`: the deictic agent has no default.'),
  model_not_allowed: entry(
    400,
    'Model not allowed',
    'Choose a model of the vendor that the agent belongs to.',
  ),
  metadata_too_large: entry(
    400,
    'Metadata too large',
    'Store at most 16 KiB of JSON as metadata, and larger data in a file of the sandbox.',
  ),
  reserved_env_var: entry(
    400,
    'Reserved environment variable',
    'Rename the variable: this name belongs to the service.',
  ),
  app_json_invalid: entry(
    400,
    'Invalid app_json',
    'Send the nested shape: name, capability_sets[].agents[].',
  ),
  tool_not_available: entry(
    400,
    'Tool not available',
    'Name in `tools` only tools that the agent has; see GET /v1/templates.',
  ),
  multi_agent_needs_wire_version_2: entry(
    400,
    'Wire version too low',
    'Leave out `wire_version` or set it to 2: version 1 allows a single agent.',
  ),
  wire_version_invalid: entry(400, 'Invalid wire version', 'Set `wire_version` to 1 or 2.'),
  persistence_url_refused: entry(
    400,
    'Persistence URL refused',
    'Use an https URL without credentials whose host resolves to public addresses only.',
  ),
  workspace_fields_required: entry(
    400,
    'Workspace fields required',
    'Send `app_id` and `capset_id` together with `workspace_enabled`.',
  ),
  credits_exhausted: entry(402, 'Credits exhausted', 'Add credits to the account and try again.'),
  sandbox_limit_reached: entry(
    429,
    'Sandbox limit reached',
    'Delete a sandbox, or ask the operator for a higher limit.',
    5,
  ),
  no_capacity: entry(
    409,
    'No capacity',
    'No worker has room now; ask for a smaller sandbox or try again later.',
  ),
  no_workers: entry(
    503,
    'No workers',
    'No worker is registered or reachable; try again once one is.',
    5,
  ),
  template_not_available: entry(
    501,
    'Template not available',
    'No worker has an image of this template; use another one, or have the operator build it.',
  ),
  sandbox_deleted: entry(
    409,
    'Sandbox deleted',
    'It was deleted while it was being created; create a new one.',
  ),
  boot_failed: entry(500, 'Boot failed', 'The sandbox did not start; try again.'),
} as const;

const SANDBOX = {
  sandbox_not_found: entry(404, 'No such sandbox', 'Check the id; see GET /v1/sandboxes.'),
  sandbox_not_running: entry(
    409,
    'Sandbox not running',
    'This needs a running sandbox; create a new one if it has ended.',
  ),
  sandbox_has_no_agent: entry(
    409,
    'No agent',
    'This needs a sandbox that was created with `agent`.',
  ),
  agent_ended: entry(
    409,
    'Agent ended',
    'The agent has exited; see `agent_exit_code` and the logs of the sandbox.',
  ),
  worker_unreachable: entry(
    503,
    'Worker unreachable',
    'The worker that holds this sandbox does not answer; try again in a moment.',
    5,
  ),
  worker_bad_response: entry(
    502,
    'Bad answer from the worker',
    'The worker gave an answer that cannot be used; if it persists, report the request_id to the operator.',
  ),
  workspace_unavailable: entry(
    503,
    'Workspace unavailable',
    'The workspace of the sandbox could not be loaded or saved; try again in a moment.',
    5,
  ),
  workspace_too_large: entry(
    409,
    'Workspace too large',
    'The workspace does not fit on the disk of the sandbox; create one with a larger `disk_mib`, or delete files.',
  ),
  guest_unresponsive: entry(
    502,
    'Sandbox does not answer',
    'The system inside the sandbox does not respond; it may be overloaded. Try again or delete it.',
  ),
  command_required: entry(
    400,
    'Command required',
    'Send `command`, a non-empty string of at most 120000 characters without NUL.',
  ),
  cwd_not_found: entry(
    400,
    'No such working directory',
    'Set `cwd` to a directory that exists in the sandbox.',
  ),
  too_many_execs: entry(
    429,
    'Too many commands',
    'Wait for a running command of this sandbox to end, then try again.',
    1,
  ),
  too_many_operations: entry(
    429,
    'Too many operations',
    'Your account runs as many of these operations at once as it may; wait for one of them to end, then try again.',
    1,
  ),
  too_many_requests: entry(
    429,
    'Too many requests',
    'Your account has as many requests in progress as it may; wait for some of them to end, then try again.',
    1,
  ),
  port_not_allowed: entry(
    400,
    'Port not allowed',
    'Name a port from 1 to 65535, except for 22, 7000 and 7100, which the sandbox needs itself.',
  ),
  port_unreachable: entry(
    502,
    'Nothing answers on the port',
    'Start a server on this port of the sandbox, on its loopback address or on all addresses.',
  ),
  port_bad_response: entry(
    502,
    'Bad answer from the port',
    'The server in the sandbox gave an answer that cannot be passed on; see what it logs.',
  ),
  port_timeout: entry(
    504,
    'No answer from the port',
    'The server in the sandbox is silent for too long; see what it does.',
  ),
  too_many_port_connections: entry(
    429,
    'Too many connections to ports',
    'Close connections to ports of your sandboxes, then try again.',
    1,
  ),
  log_stream_unknown: entry(400, 'Unknown log stream', 'Use stream=stderr.'),
  log_stream_not_implemented: entry(501, 'Log stream not implemented', 'Use stream=stderr.'),
  log_count_invalid: entry(
    400,
    'Invalid log count',
    'Send `lines` or `bytes` as an integer of at least 1.',
  ),
  logs_unavailable: entry(
    503,
    'Log unavailable',
    "The log of this sandbox's agent cannot be read now; try again in a moment. A log that was lost with its machine stays unavailable.",
    5,
  ),
  log_lines_and_bytes: entry(400, 'Conflicting log query', 'Send `lines` or `bytes`, not both.'),
  unknown_cancel_reason: entry(
    400,
    'Unknown cancel reason',
    'Use credits_exhausted, user_request, admin_action or timeout.',
  ),
} as const;

const FILES = {
  path_required: entry(400, 'Path required', 'Send the query parameter `path` once.'),
  path_not_absolute: entry(400, 'Path not absolute', 'Send a `path` that starts with `/`.'),
  path_traversal: entry(400, 'Path traversal', 'Send a `path` without `..` components.'),
  invalid_path: entry(
    400,
    'Invalid path',
    'Send a `path` of at most 4096 bytes, each component at most 255, without NUL.',
  ),
  missing_body: entry(400, 'Missing body', 'Send the bytes of the file as the request body.'),
  parent_not_found: entry(400, 'Parent not found', 'Create the parent directory first.'),
  parent_not_directory: entry(
    400,
    'Parent is not a directory',
    'Name a path whose parent is a directory, not a file.',
  ),
  symlink_loop: entry(
    400,
    'Symbolic link loop',
    'The symbolic links of this path lead in a circle; correct them, or name the file itself.',
  ),
  is_directory: entry(400, 'Is a directory', 'Name a file, not a directory.'),
  not_regular_file: entry(400, 'Not a regular file', 'Name a regular file.'),
  file_not_found: entry(404, 'No such file', 'Check the path.'),
  disk_full: entry(507, 'Disk full', 'Free some space in the sandbox, or create a larger one.'),
} as const;

const ACCOUNTS = {
  email_invalid: entry(400, 'Invalid email address', 'Send `email` as a valid address.'),
  email_send_failed: entry(500, 'Email not sent', 'The code could not be sent; try again later.'),
  otp_invalid: entry(401, 'Invalid code', 'The code is wrong, used or expired; ask for a new one.'),
  otp_rate_limited: entry(
    429,
    'Too many codes',
    'This address asked for too many codes; wait as long as Retry-After says.',
  ),
  ip_rate_limited: entry(
    429,
    'Too many requests from this address',
    'Wait as long as Retry-After says, then try again.',
  ),
  api_key_not_found: entry(404, 'No such API key', 'Check the id against the list of your keys.'),
  api_key_limit_reached: entry(
    409,
    'API key limit reached',
    'Revoke an API key before you create another. To sign in without a new key, use POST /v1/auth/login.',
  ),
  bundle_name_invalid: entry(
    400,
    'Invalid bundle name',
    'Use 1 to 63 of a-z, 0-9 and `-`, starting with a letter or digit.',
  ),
  secret_key_invalid: entry(400, 'Invalid secret key', 'Use a valid environment variable name.'),
  reserved_secret_key: entry(
    400,
    'Reserved secret key',
    'Rename the key: this name belongs to the service.',
  ),
  secret_value_too_large: entry(
    400,
    'Secret value too large',
    'Send values of at most 65536 bytes of UTF-8.',
  ),
  too_many_secret_keys: entry(400, 'Too many secret keys', 'Send at most 50 keys in a bundle.'),
  llm_base_url_refused: entry(
    400,
    'LLM base URL refused',
    'Use an https URL without credentials whose host resolves to public addresses only.',
  ),
  bundle_not_found: entry(404, 'No such secret bundle', 'Check the name.'),
  bundle_exists: entry(409, 'Bundle exists', 'Choose another name, or replace it with PUT.'),
  bundle_quota_exceeded: entry(429, 'Too many bundles', 'Delete a bundle before adding another.'),
  template_not_found: entry(404, 'No such template', 'Check the app_id; see GET /v1/templates.'),
} as const;

const BILLING = {
  payment_provider_unavailable: entry(
    503,
    'Payment provider unavailable',
    'The payment provider does not answer or refuses this request; try again in a moment.',
    5,
  ),
  checkout_not_found: entry(
    404,
    'No such checkout',
    'The link is wrong or has expired; begin a new purchase.',
  ),
  webhook_signature_invalid: entry(
    400,
    'Invalid webhook signature',
    'Sign the unchanged body with the secret of this endpoint, and send it within five minutes.',
  ),
} as const;

const SESSIONS = {
  session_agent_unknown: entry(
    400,
    'Unknown agent',
    `Set \`agent.kind\` to ${DISJUNCTION.format(AGENTS)}.`,
  ),
  session_template_unknown: entry(
    400,
    'Unknown template',
    `Set \`template\` to ${DISJUNCTION.format(SESSION_TEMPLATES)}.`,
  ),
  agent_version_unavailable: entry(
    400,
    'Agent version unavailable',
    'Leave out `agent.version`, or name one of `versions` in GET /v1/templates.',
  ),
  llm_model_invalid: entry(
    400,
    'Invalid model',
    'Send `llm.model` as a model name of letters, digits and `._:/@-`, at most 128 characters.',
  ),
  llm_api_key_missing: entry(
    400,
    'LLM key missing',
    'Name secret bundles in `secrets` that together hold `LLM_API_KEY`.',
  ),
  secret_key_collision: entry(
    400,
    'Secret key collision',
    'Two of the named bundles hold the same key; name bundles that do not overlap.',
  ),
  secrets_too_large: entry(
    400,
    'Secrets too large',
    `The values of the named bundles are more than the ${LIMITS.sessionEnvBytes} bytes that fit into an environment; name fewer bundles, or shorten their values.`,
  ),
  capability_set_unknown: entry(
    400,
    'Unknown capability set',
    'Set `app.set_id` to a set that `app.capability_sets` or the catalogue has.',
  ),
  session_not_found: entry(404, 'No such session', 'Check the id; see GET /v1/sessions.'),
  session_of_another_tenant: entry(
    403,
    'Session of another account',
    'Use an API key of the account that created the session.',
  ),
  session_token_mismatch: entry(
    403,
    'Token of another session',
    'Use the `connect_url` and the `jwt` of the same session record.',
  ),
  control_plane_unreachable: entry(
    503,
    'Sessions cannot be looked up',
    'The control plane does not answer this runtime host; try again in a moment.',
    5,
  ),
  session_limit_reached: entry(
    409,
    'Session limit reached',
    'Erase a session that you no longer need, with DELETE /v1/sessions/{id}?erase=true, before you start another.',
  ),
  session_storage_full: entry(
    409,
    'Session storage full',
    'Erase a session that you no longer need, with DELETE /v1/sessions/{id}?erase=true.',
  ),
  too_many_connections: entry(
    429,
    'Too many connections',
    'Close a WebSocket of your account, or wait until one is closed, then try again.',
    5,
  ),
  session_starting: entry(
    409,
    'Session is starting',
    'Another request resumes this session right now; wait for it, then attach or resume again.',
    1,
  ),
  session_erased: entry(
    410,
    'Session erased',
    'Its conversation and files were erased, on request or after their retention; start a new session.',
  ),
  secret_bundle_not_found_at_resume: entry(
    502,
    'Secret bundle is gone',
    'A secret bundle of this session was deleted; create it again under its name, then resume.',
  ),
  session_files_damaged: entry(
    500,
    'Session data damaged',
    'Stored data of this session is missing or damaged; report the request_id to the operator.',
  ),
} as const;

/** Presigned URLs of stored objects, and the store behind them. */
const OBJECTS = {
  object_url_invalid: entry(
    403,
    'Invalid URL',
    'Use the URL unchanged, with the method that it was issued for.',
  ),
  object_url_expired: entry(403, 'URL expired', 'Ask for a new URL.'),
  object_not_found: entry(404, 'No such object', 'It was deleted or never uploaded.'),
  object_size_mismatch: entry(
    400,
    'Wrong size',
    'Send exactly as many bytes as Content-Length says and as the URL was issued for.',
  ),
  length_required: entry(411, 'Length required', 'Send a Content-Length.'),
  range_not_satisfiable: entry(
    416,
    'Range not satisfiable',
    'Ask for bytes that the object has; see Content-Range.',
  ),
  object_store_unavailable: entry(
    503,
    'Object store unavailable',
    'The object store does not answer; try again in a moment.',
    5,
  ),
} as const;

const WORKSPACES = {
  workspace_not_found: entry(404, 'No such workspace', 'Check its ids; see GET /v1/workspaces.'),
  workspace_file_not_found: entry(
    404,
    'No such file',
    'Check the path; an upload appears when it is complete.',
  ),
  workspace_path_invalid: entry(
    400,
    'Invalid path',
    `Send a relative path without empty, \`.\` or \`..\` components, of at most ${LIMITS.storedPathBytes} bytes.`,
  ),
  workspace_path_conflict: entry(
    409,
    'Path is in use',
    'Choose a path that is no directory of other files, and that is in no file.',
  ),
  workspace_quota_exceeded: entry(
    409,
    'Workspaces are full',
    'Delete files, or ask the operator for a higher limit.',
  ),
  too_many_uploads: entry(
    429,
    'Too many uploads',
    'Complete the uploads that have begun, or wait until their URLs expire.',
    60,
  ),
} as const;

/** Codes of the internal API between the control plane and workers. Clients never see them. */
const INTERNAL = {
  worker_not_registered: entry(404, 'Worker not registered', 'Register this worker again.'),
  worker_id_in_use: entry(
    409,
    'Worker id in use',
    'Another machine is registered with this worker id and alive. Give each worker an SVC_WORKER_ID of its own.',
  ),
  component_unauthorized: entry(
    401,
    'Component unauthorized',
    'This component has never enrolled here, its identity has been revoked, or its clock is wrong. Enrol it with a new token, or correct its clock.',
  ),
  enrolment_token_invalid: entry(
    401,
    'Invalid enrolment token',
    'The token is malformed or has expired. Make another with `svc worker token` or `svc runtime token`.',
  ),
  enrolment_token_used: entry(
    409,
    'Enrolment token used',
    'Each token enrols as many components as it was made for. Make another with `svc worker token` or `svc runtime token`.',
  ),
  component_id_in_use: entry(
    409,
    'Component id in use',
    'A component with another key has this id. Choose another id or, if this machine replaces that one, make a token with `--id`.',
  ),
  worker_id_mismatch: entry(403, 'Worker id mismatch', 'Use the token of the worker in the path.'),
  stale_generation: entry(
    409,
    'Stale generation',
    'A newer generation of this sandbox or session exists.',
  ),
  workspace_flush_closed: entry(
    409,
    'Flush is closed',
    'It is unknown or committed, or the sandbox has begun a newer one; begin a new flush.',
  ),
} as const;

export const ERRORS = {
  ...GENERAL,
  ...IDEMPOTENCY,
  ...SANDBOX_CREATE,
  ...SANDBOX,
  ...FILES,
  ...ACCOUNTS,
  ...BILLING,
  ...SESSIONS,
  ...OBJECTS,
  ...WORKSPACES,
  ...INTERNAL,
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** Whether `value` is a code in the catalogue. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value);
}

function entry<const S extends number>(
  status: S,
  title: string,
  detail: string,
  retryAfterSeconds?: number,
) {
  return { status, title, detail, retryAfterSeconds };
}
