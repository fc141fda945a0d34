/** The names, descriptions and defaults of all environment variables of the service. */

import { DEFAULT_LIMITS } from '@svc/contract';
import type { Kind, Variable } from './kind.ts';
import * as kinds from './kinds.ts';

const MAX_INT = Number.MAX_SAFE_INTEGER;
/** A century. */
const MAX_DAYS = 36_500;
/** 1,000 US dollars. */
const MAX_PRICE = 1_000_000_000;

function variable<T>(name: string, kind: Kind<T>, meaning: string): Variable<T> {
  return { name, kind, meaning };
}

/** A variable that always has a value. */
function withDefault<T>(name: string, kind: Kind<T>, fallback: string, meaning: string) {
  return { name, kind, meaning, fallback } satisfies Variable<T>;
}

/** The least number of characters of a cluster secret. */
export const CLUSTER_SECRET_LENGTH = 32;

export const VARIABLES = {
  dataDir: {
    ...variable(
      'SVC_DATA_DIR',
      kinds.path,
      'Directory for all persistent data. Only one service at a time can use it.',
    ),
    documentedDefault: '`$XDG_DATA_HOME/svc`, usually `~/.local/share/svc`',
  },
  imageDir: {
    ...variable(
      'SVC_IMAGE_DIR',
      kinds.path,
      'Directory for built images, shared by all data directories.',
    ),
    documentedDefault: '`$XDG_CACHE_HOME/svc/images`, usually `~/.cache/svc/images`',
  },
  imageBudgetMib: withDefault(
    'SVC_IMAGE_BUDGET_MIB',
    kinds.integer(0, 100_000_000),
    '40960',
    'Space in `SVC_IMAGE_DIR` above which snapshots in unusual sizes, outdated images and unused bases are removed, the least recently used first. The current images stay.',
  ),
  imageSource: withDefault(
    'SVC_IMAGE_SOURCE',
    kinds.oneOf('build', 'store', 'store-or-build'),
    'build',
    'Where this machine gets the images that it lacks: `build` builds them, `store` gets them from the object store, `store-or-build` builds those that cannot be had there. See operations.md.',
  ),
  imageTrustedKeys: withDefault(
    'SVC_IMAGE_TRUSTED_KEYS',
    kinds.publicKeyList,
    '',
    'Public keys, as `svc image key` prints them. Only images that one of them signed are taken from the object store.',
  ),
  imageNotBefore: variable(
    'SVC_IMAGE_NOT_BEFORE',
    kinds.time,
    'Images in the object store that were signed before this time are refused, so that nobody can bring back an old one that you withdrew.',
  ),
  imageSigningKeyFile: {
    ...variable(
      'SVC_IMAGE_SIGNING_KEY_FILE',
      kinds.path,
      'Private key with which `svc image push` signs images (PEM). Services do not need it.',
    ),
    documentedDefault: '`image-signing-key.pem` in the data directory',
  },
  imageStoreBudgetMib: withDefault(
    'SVC_IMAGE_STORE_BUDGET_MIB',
    kinds.integer(0, 100_000_000),
    '40960',
    'Space for images in the object store above which control planes remove those that were pushed first. The newest of each template stay, and those that a worker had in the last day.',
  ),
  kvmProbeSeconds: withDefault(
    'SVC_KVM_PROBE_SECONDS',
    kinds.integer(1, 600),
    '8',
    'How long a first guest may take to show that KVM works on this machine. Otherwise sandboxes are emulated, and a start an hour later tries again.',
  ),
  listen: withDefault(
    'SVC_LISTEN',
    kinds.listenAddress,
    'localhost:8443',
    'Address that the control plane listens on.',
  ),
  baseUrl: {
    ...variable(
      'SVC_BASE_URL',
      kinds.origin('https:', 'http:'),
      'Public URL of the control plane.',
    ),
    documentedDefault: '`https://localhost:` and the port of `SVC_LISTEN`',
  },
  internalListen: {
    ...variable(
      'SVC_INTERNAL_LISTEN',
      kinds.listenAddress,
      'Address of the control plane for workers, runtime hosts and the operator: its internal routes and `/metrics`, which the public address then no longer serves.',
    ),
    documentedDefault: 'none: the public address serves them too',
  },
  runtimeListen: {
    ...variable(
      'SVC_RUNTIME_LISTEN',
      kinds.listenAddress,
      'Address that the runtime host listens on.',
    ),
    documentedDefault: 'the port after the one in `SVC_LISTEN`: `localhost:8444`',
  },
  runtimeInternalListen: {
    ...variable(
      'SVC_RUNTIME_INTERNAL_LISTEN',
      kinds.listenAddress,
      'Address of the runtime host for the operator: its `/metrics`, which the public address then no longer serves.',
    ),
    documentedDefault: 'none: the public address serves them too',
  },
  runtimeUrl: {
    ...variable('SVC_RUNTIME_URL', kinds.origin('wss:', 'ws:'), 'Public URL of the runtime host.'),
    documentedDefault: '`wss://localhost:` and the port of `SVC_RUNTIME_LISTEN`',
  },
  tls: withDefault(
    'SVC_TLS',
    kinds.onOff,
    'on',
    '`off` serves plain HTTP, for use behind a proxy that terminates TLS.',
  ),
  tlsCertFile: {
    ...variable('SVC_TLS_CERT_FILE', kinds.path, 'Certificate chain to serve (PEM).'),
    documentedDefault: 'a certificate issued by the local CA in the data directory',
  },
  tlsKeyFile: variable('SVC_TLS_KEY_FILE', kinds.path, 'Private key of `SVC_TLS_CERT_FILE` (PEM).'),
  trustProxy: withDefault(
    'SVC_TRUST_PROXY',
    kinds.addressList,
    '',
    'Addresses or networks of proxies whose X-Forwarded-For header is trusted.',
  ),
  proxyProtocol: withDefault(
    'SVC_PROXY_PROTOCOL',
    kinds.addressList,
    '',
    'Addresses or networks of load balancers, whose connections to a control plane or runtime host all begin with a header of the PROXY protocol.',
  ),
  corsOrigins: withDefault(
    'SVC_CORS_ORIGINS',
    kinds.originList,
    '',
    'Origins whose pages may call the API from a browser.',
  ),
  drainSeconds: withDefault(
    'SVC_DRAIN_SECONDS',
    kinds.integer(0, 86_400),
    '75',
    'How long a process that stops waits for requests in progress whose sandboxes stay. See operations.md.',
  ),
  drainNoticeSeconds: {
    ...variable(
      'SVC_DRAIN_NOTICE_SECONDS',
      kinds.integer(0, 600),
      'How long a control plane or runtime host that stops still accepts requests while `/readyz` is 503, so that load balancers move away.',
    ),
    documentedDefault: '`5` in a fleet, `0` for `svc up`',
  },
  logLevel: withDefault(
    'SVC_LOG_LEVEL',
    kinds.oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    'info',
    'Lowest severity that is logged.',
  ),
  accessLog: withDefault(
    'SVC_ACCESS_LOG',
    kinds.onOff,
    'off',
    '`on` logs a line for each request of the control plane and the runtime host. See operations.md.',
  ),
  otlpEndpoint: {
    ...variable(
      'SVC_OTLP_ENDPOINT',
      kinds.baseUrl('https:', 'http:'),
      'OpenTelemetry collector that gets traces, as OTLP over HTTP with JSON, at `/v1/traces` below this URL. See operations.md.',
    ),
    documentedDefault: 'none: nothing is traced',
  },
  otlpHeaders: withDefault(
    'SVC_OTLP_HEADERS',
    kinds.secretHeaders,
    '',
    'Headers for the collector with credentials, as in `authorization=Bearer …`.',
  ),
  traceRatio: withDefault(
    'SVC_TRACE_RATIO',
    kinds.share,
    '0.1',
    'Share of the requests of clients that are traced, from 0 to 1, whatever their `traceparent` says.',
  ),
  databaseUrl: {
    ...variable(
      'SVC_DATABASE_URL',
      kinds.secretUrl('postgres:', 'postgresql:'),
      'PostgreSQL server to use.',
    ),
    documentedDefault: 'an embedded PostgreSQL in the data directory',
  },
  backupDir: {
    ...variable(
      'SVC_BACKUP_DIR',
      kinds.path,
      'Directory for the backups of the embedded PostgreSQL, which then archives its log there all the time.',
    ),
    documentedDefault: 'none',
  },
  smtpUrl: {
    ...variable(
      'SVC_SMTP_URL',
      kinds.secretUrl('smtp:', 'smtps:'),
      'SMTP server for outgoing email.',
    ),
    documentedDefault: 'none: email is written to `outbox/` in the data directory',
  },
  mailFrom: withDefault(
    'SVC_MAIL_FROM',
    kinds.plainText,
    'svc <svc@localhost>',
    'Sender of outgoing email.',
  ),
  s3Endpoint: {
    ...variable(
      'SVC_S3_ENDPOINT',
      kinds.origin('https:', 'http:'),
      'S3 server for objects, as in `https://s3.eu-central-1.amazonaws.com`. Set all five variables, or none.',
    ),
    documentedDefault: 'none: objects are stored in the data directory',
  },
  s3Region: variable('SVC_S3_REGION', kinds.identifier, 'Region of the bucket.'),
  s3Bucket: variable('SVC_S3_BUCKET', kinds.identifier, 'Bucket for objects. It must exist.'),
  s3AccessKeyId: variable(
    'SVC_S3_ACCESS_KEY_ID',
    kinds.plainText,
    'Access key of an account that may read, write, list and delete in the bucket.',
  ),
  s3SecretAccessKey: variable(
    'SVC_S3_SECRET_ACCESS_KEY',
    kinds.secretText(1),
    'Secret of `SVC_S3_ACCESS_KEY_ID`.',
  ),
  masterKey: {
    ...variable(
      'SVC_MASTER_KEY',
      kinds.secretKey,
      'Master key that wraps the keys of stored secrets.',
    ),
    documentedDefault: 'that of `SVC_MASTER_KEY_FILE`',
  },
  masterKeyFile: {
    ...variable(
      'SVC_MASTER_KEY_FILE',
      kinds.path,
      'File with master keys, one on each line, the newest first. It is read again for a key that is not known yet.',
    ),
    documentedDefault: '`keys/master-key` in the data directory, generated at the first start',
  },
  masterKeyPrevious: variable(
    'SVC_MASTER_KEY_PREVIOUS',
    kinds.secretKey,
    'Master key that `SVC_MASTER_KEY` replaces, needed until `svc secrets rotate-master-key` has finished.',
  ),
  clusterSecret: {
    ...variable(
      'SVC_CLUSTER_SECRET',
      kinds.secretText(CLUSTER_SECRET_LENGTH),
      'Secret that all control planes of a fleet share, and nobody else may have. Their keys are derived from it.',
    ),
    documentedDefault: 'that of `SVC_CLUSTER_SECRET_FILE`',
  },
  clusterSecretFile: {
    ...variable(
      'SVC_CLUSTER_SECRET_FILE',
      kinds.path,
      'File with cluster secrets, one on each line: the first signs, each is accepted. It is read again every minute.',
    ),
    documentedDefault: '`cluster-secret` in the data directory, generated at the first start',
  },
  clusterSecretAccepted: variable(
    'SVC_CLUSTER_SECRET_ACCEPTED',
    kinds.secretText(CLUSTER_SECRET_LENGTH),
    'Another cluster secret whose signatures count, while `SVC_CLUSTER_SECRET` is being replaced.',
  ),
  enrolmentToken: variable(
    'SVC_ENROLMENT_TOKEN',
    kinds.secretText(1),
    'Token with which a worker or a runtime host of a fleet enrols at its first start: see `svc worker token` and `svc runtime token`.',
  ),
  workerId: {
    ...variable(
      'SVC_WORKER_ID',
      kinds.identifier,
      'Permanent name of this worker, unique in the fleet.',
    ),
    documentedDefault: 'generated at the first start and kept in the data directory',
  },
  workerListen: withDefault(
    'SVC_WORKER_LISTEN',
    kinds.listenAddress,
    '127.0.0.1:0',
    'Address that the worker listens on for the control plane; port 0 picks any free port.',
  ),
  workerUrl: {
    ...variable(
      'SVC_WORKER_URL',
      kinds.origin('https:'),
      'URL at which control planes reach this worker.',
    ),
    documentedDefault: 'derived from `SVC_WORKER_LISTEN`',
  },
  workerOnSigterm: withDefault(
    'SVC_WORKER_ON_SIGTERM',
    kinds.oneOf('keep', 'end'),
    'keep',
    'What `svc worker` does with its sandboxes on SIGTERM: `keep` leaves them running for a restart in place, `end` ends them in order, for machines that go away.',
  ),
  workerEndSeconds: withDefault(
    'SVC_WORKER_END_SECONDS',
    kinds.integer(1, 3_600),
    '90',
    'How long a worker that ends its sandboxes has to save them; what is left then ends unsaved. Shorter than the notice of a spot instance.',
  ),
  controlPlaneUrl: {
    ...variable(
      'SVC_CONTROL_PLANE_URL',
      kinds.encryptedOrigin,
      'Control plane that a worker or runtime host on another machine registers with.',
    ),
    documentedDefault: 'the control plane on this machine',
  },
  caFile: {
    ...variable(
      'SVC_CA_FILE',
      kinds.path,
      'CA that signed the certificate of the control plane (PEM), if the system does not trust it.',
    ),
    documentedDefault: 'the local CA in the data directory',
  },
  billingEnforce: withDefault(
    'SVC_BILLING_ENFORCE',
    kinds.onOff,
    'off',
    '`on` refuses new sandboxes and sessions of accounts without credit, and ends their running ones after a minute. See billing.md.',
  ),
  stripeSecretKey: {
    ...variable(
      'SVC_STRIPE_SECRET_KEY',
      kinds.secretText(1),
      'Secret key of the Stripe account that receives payments.',
    ),
    documentedDefault: 'none: a page of the control plane credits accounts free of charge',
  },
  stripeWebhookSecret: variable(
    'SVC_STRIPE_WEBHOOK_SECRET',
    kinds.secretText(1),
    "Signing secret of Stripe's webhook endpoint, required with `SVC_STRIPE_SECRET_KEY`.",
  ),
  stripeApiBase: {
    ...variable(
      'SVC_STRIPE_API_BASE',
      kinds.origin('https:', 'http:'),
      "Address of Stripe's API, for tests.",
    ),
    documentedDefault: "Stripe's own",
  },
  signupGrantCents: withDefault(
    'SVC_SIGNUP_GRANT_CENTS',
    kinds.integer(0, 1_000_000),
    '500',
    'Credit of each new account, in cents.',
  ),
  egressAllowHosts: withDefault(
    'SVC_EGRESS_ALLOW_HOSTS',
    kinds.allowedHosts,
    '',
    'Non-public hosts, as `host[:port]`, that outgoing requests may reach.',
  ),
  egressCaFile: variable(
    'SVC_EGRESS_CA_FILE',
    kinds.path,
    'Additional CA certificates for outgoing requests (PEM).',
  ),
  templates: withDefault(
    'SVC_TEMPLATES',
    kinds.templateList,
    'standard',
    'Templates whose images the service prepares.',
  ),
  pool: withDefault(
    'SVC_POOL',
    kinds.poolSizes,
    'standard=2',
    'Number of idle sandboxes kept ready for each template, as in `standard=2,browser=0`.',
  ),
  sessionRetentionDays: withDefault(
    'SVC_SESSION_RETENTION_DAYS',
    kinds.integer(0, MAX_DAYS),
    '30',
    'Days for which an ended session keeps its conversation, files and frames; 0: for ever.',
  ),
  sandboxRetentionDays: withDefault(
    'SVC_SANDBOX_RETENTION_DAYS',
    kinds.integer(0, MAX_DAYS),
    '90',
    'Days for which the record of an ended sandbox is kept; 0: for ever.',
  ),
  auditRetentionDays: withDefault(
    'SVC_AUDIT_RETENTION_DAYS',
    kinds.integer(0, MAX_DAYS),
    '400',
    'Days for which an audit record, or the record of a revoked API key, is kept; 0: for ever.',
  ),
  modelAnthropic: withDefault(
    'SVC_MODEL_ANTHROPIC',
    kinds.modelName,
    'claude-sonnet-5-5',
    'Default model for sessions and agents that name the vendor Anthropic but no model.',
  ),
  modelOpenai: withDefault(
    'SVC_MODEL_OPENAI',
    kinds.modelName,
    'gpt-5.5',
    'The same for OpenAI, and for codex.',
  ),
  modelGoogle: withDefault(
    'SVC_MODEL_GOOGLE',
    kinds.modelName,
    'gemini-pro-latest',
    'The same for Google.',
  ),
  modelDeepseek: withDefault(
    'SVC_MODEL_DEEPSEEK',
    kinds.modelName,
    'deepseek-v4-pro',
    'The same for DeepSeek.',
  ),
  priceCpuSecond: withDefault(
    'SVC_PRICE_CPU_SECOND_MICROUSD',
    kinds.integer(0, MAX_PRICE),
    '14',
    'Price of a second of CPU time, in millionths of a US dollar.',
  ),
  priceGibSecond: withDefault(
    'SVC_PRICE_GIB_SECOND_MICROUSD',
    kinds.integer(0, MAX_PRICE),
    '4',
    'Price of a GiB of memory that a sandbox has, running or paused, for a second, in millionths of a US dollar.',
  ),
  priceToolCall: withDefault(
    'SVC_PRICE_TOOL_CALL_MICROUSD',
    kinds.integer(0, MAX_PRICE),
    '0',
    'Price of a tool call of an agent, in millionths of a US dollar.',
  ),
} as const;

export const LIMIT_VARIABLES = {
  otpPerEmailPerHour: withDefault(
    'SVC_LIMIT_OTP_PER_EMAIL_PER_HOUR',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.otpPerEmailPerHour),
    'One-time codes sent to one email address per hour.',
  ),
  otpPerIpPerHour: withDefault(
    'SVC_LIMIT_OTP_PER_IP_PER_HOUR',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.otpPerIpPerHour),
    'One-time codes requested from one IP address per hour.',
  ),
  otpWrongPerIpPerHour: withDefault(
    'SVC_LIMIT_OTP_WRONG_PER_IP_PER_HOUR',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.otpWrongPerIpPerHour),
    'Wrong one-time codes from one IP address per hour. At the limit, right ones are refused too.',
  ),
  templatesPerMinute: withDefault(
    'SVC_LIMIT_TEMPLATES_PER_MINUTE',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.templatesPerMinute),
    'Template requests of one tenant per minute.',
  ),
  sandboxesPerTenant: withDefault(
    'SVC_LIMIT_SANDBOXES_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.sandboxesPerTenant),
    'Concurrent sandboxes of one tenant.',
  ),
  sessionsPerTenant: withDefault(
    'SVC_LIMIT_SESSIONS_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.sessionsPerTenant),
    'Sessions of one tenant that are not erased.',
  ),
  sessionBytesPerTenant: withDefault(
    'SVC_LIMIT_SESSION_BYTES_PER_TENANT',
    kinds.integer(1, MAX_INT),
    String(DEFAULT_LIMITS.sessionBytesPerTenant),
    'Bytes of the conversations, files and frames that the sessions of one tenant keep, in all; beyond them no task adds any.',
  ),
  savedBytesPerSecond: withDefault(
    'SVC_LIMIT_SAVED_BYTES_PER_SECOND',
    kinds.integer(1, MAX_INT),
    String(DEFAULT_LIMITS.savedBytesPerSecond),
    'Bytes that the sandboxes of one tenant on one worker may save in a second, in sessions and in workspaces. Those of 64 seconds may be saved at once.',
  ),
  viewBytesPerSecond: withDefault(
    'SVC_LIMIT_VIEW_BYTES_PER_SECOND',
    kinds.integer(1, MAX_INT),
    String(DEFAULT_LIMITS.viewBytesPerSecond),
    'Bytes of live views of desktops that the clients of one tenant on one worker are sent in a second. Those of 4 seconds may be sent at once.',
  ),
  outputBytesPerSecond: withDefault(
    'SVC_LIMIT_OUTPUT_BYTES_PER_SECOND',
    kinds.integer(1, MAX_INT),
    String(DEFAULT_LIMITS.outputBytesPerSecond),
    'Bytes that the commands of one tenant on one worker may send in a second, as JSON. Those of 2 seconds may be sent at once.',
  ),
  apiKeysPerTenant: withDefault(
    'SVC_LIMIT_API_KEYS_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.apiKeysPerTenant),
    'API keys of one tenant that are not revoked.',
  ),
  requestsPerTenant: withDefault(
    'SVC_LIMIT_REQUESTS_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.requestsPerTenant),
    'Concurrent requests of one tenant, on each control plane, and as many deletions. Connections to ports do not count. More than the operations and calls below together.',
  ),
  operationsPerTenant: withDefault(
    'SVC_LIMIT_OPERATIONS_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.operationsPerTenant),
    'Concurrent commands and file transfers of one tenant, on each control plane.',
  ),
  callsPerTenant: withDefault(
    'SVC_LIMIT_CALLS_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.callsPerTenant),
    'Concurrent lists of sandboxes, reads of logs, pauses, resumes and cancels of one tenant, on each control plane.',
  ),
  portConnectionsPerTenant: withDefault(
    'SVC_LIMIT_PORT_CONNECTIONS_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.portConnectionsPerTenant),
    'Concurrent connections to ports of the sandboxes of one tenant, on each control plane.',
  ),
  webSocketsPerTenant: withDefault(
    'SVC_LIMIT_WEBSOCKETS_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.webSocketsPerTenant),
    'Concurrent WebSockets of one tenant, on each runtime host.',
  ),
  uploadBytes: withDefault(
    'SVC_LIMIT_UPLOAD_BYTES',
    kinds.integer(1, MAX_INT),
    String(DEFAULT_LIMITS.uploadBytes),
    'Maximum size of an uploaded file, in bytes.',
  ),
  workspaceBytes: withDefault(
    'SVC_LIMIT_WORKSPACE_BYTES',
    kinds.integer(1, MAX_INT),
    String(DEFAULT_LIMITS.workspaceBytes),
    'Bytes in all workspaces of one tenant.',
  ),
  workspaceEntries: withDefault(
    'SVC_LIMIT_WORKSPACE_ENTRIES',
    kinds.integer(1, MAX_INT),
    String(DEFAULT_LIMITS.workspaceEntries),
    'Files, directories and symbolic links in all workspaces of one tenant.',
  ),
  workspacesPerTenant: withDefault(
    'SVC_LIMIT_WORKSPACES_PER_TENANT',
    kinds.integer(1, 1_000_000),
    String(DEFAULT_LIMITS.workspacesPerTenant),
    'Workspaces of one tenant, also empty ones that were used in the last week.',
  ),
} as const;

/** Variables that only client commands read. The service ignores them, so that both can run in one environment. */
export const CLIENT_VARIABLES: readonly Variable<unknown>[] = [
  {
    ...variable('SVC_API_KEY', kinds.secretText(1), 'API key for client commands.'),
    documentedDefault: 'the key of the last `svc login`, or of the service in the data directory',
  },
  {
    ...variable(
      'SVC_ACCOUNT_TOKEN',
      kinds.secretText(1),
      'Account token for the commands of an account, such as `svc billing`.',
    ),
    documentedDefault: 'the token of the last `svc login`, valid for an hour',
  },
];

/** Every variable of the service, in the order of the documentation. */
export const ALL_VARIABLES: readonly Variable<unknown>[] = [
  ...Object.values(VARIABLES),
  ...Object.values(LIMIT_VARIABLES),
];
