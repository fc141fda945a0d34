/**
 * Every fixed numeric limit of the service, in the units its name gives.
 * Limits that an operator may change are the defaults of `SVC_LIMIT_*` and live in {@link DEFAULT_LIMITS}.
 */

const KIB = 1024;
const MIB = 1024 * KIB;

export const LIMITS = {
  /** Largest JSON request body. */
  jsonBodyBytes: MIB,
  /** Largest request body of the secret-bundle routes. */
  secretBodyBytes: 4 * MIB,

  idleTimeoutSecondsDefault: 60,
  maxLifetimeSecondsDefault: 7200,
  /** Longer lifetimes are clamped to this. */
  maxLifetimeSecondsCap: 7200,
  /** The warning event goes out this long before the maximum lifetime. */
  lifetimeWarningSeconds: 10,
  reaperIntervalMs: 10_000,
  /** A destroyed sandbox stays visible to list and get for this long. */
  destroyedRecordSeconds: 900,

  vcpuMin: 1,
  vcpuMax: 8,
  memoryMibMin: 256,
  memoryMibMax: 16_384,
  diskMibMin: 512,
  diskMibMax: 65_536,

  envVarsMax: 256,
  envNameChars: 128,
  envValueChars: 65_536,

  commandChars: 120_000,
  execTimeoutSecondsMax: 7200,
  /** Output beyond this is dropped and the result is marked truncated. */
  execOutputBytes: 10 * MIB,
  /** Commands running at once in one sandbox. */
  execsPerSandbox: 64,

  pathBytes: 4096,
  pathComponentBytes: 255,

  logLinesDefault: 100,
  logLinesMax: 10_000,
  logBytesMax: MIB,

  idempotencyKeyChars: 255,
  idempotencySeconds: 86_400,

  secretBundlesPerTenant: 50,
  secretKeysPerBundle: 50,
  /** Of UTF-8, for each value. */
  secretValueBytes: 65_536,

  sessionTtlSecondsDefault: 3600,
  /** Longer times are clamped to this. */
  sessionTtlSecondsCap: 7200,
  /** The sandbox of a session ends when nobody attaches and nothing runs for this long. */
  sessionIdleSeconds: 900,
  bundlesPerSession: 10,
  /** A larger frame of a client is answered by an error. */
  clientFrameBytes: MIB,
  /** WebSockets attached to one session at once. */
  clientsPerSession: 64,
  /** Tasks that wait behind the running one. */
  queuedTasks: 8,
  keepaliveIntervalMs: 30_000,
  /** The agent's working files beyond this are not kept for a resume. */
  sessionFilesBytes: 256 * MIB,
  /** Frames kept for `after_seq`; older ones go first. */
  sessionHistoryBytes: 16 * MIB,

  apiKeyNameChars: 64,

  pageDefault: 20,
  pageMax: 100,

  emailChars: 254,
  otpDigits: 6,
  otpSeconds: 600,
  otpWrongTries: 5,
} as const;

/** Defaults of the limits that an operator can change with `SVC_LIMIT_*`. */
export const DEFAULT_LIMITS = {
  otpPerEmailPerHour: 3,
  otpPerIpPerHour: 20,
  templatesPerMinute: 120,
  sandboxesPerTenant: 100,
  uploadBytes: 1024 * MIB,
} as const;
