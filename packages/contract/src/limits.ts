/**
 * Every fixed numeric limit of the service, in the unit that its name states.
 * Limits that an operator may change are the defaults of `SVC_LIMIT_*` and live in {@link DEFAULT_LIMITS}.
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

export const LIMITS = {
  /** Largest JSON request body. */
  jsonBodyBytes: MIB,
  /** Largest request body of the secret-bundle routes. */
  secretBodyBytes: 4 * MIB,

  idleTimeoutSecondsDefault: 60,
  maxLifetimeSecondsDefault: 7200,
  /** Longer lifetimes are clamped to this value. */
  maxLifetimeSecondsCap: 7200,
  /** The warning event is sent this long before the maximum lifetime ends. */
  lifetimeWarningSeconds: 10,
  reaperIntervalMs: 10_000,
  /** List and get show a destroyed sandbox for this long. */
  destroyedRecordSeconds: 900,
  /** A list shows at most this many of them, the last ones. */
  destroyedRecordsListed: 100,

  vcpuMin: 1,
  vcpuMax: 8,
  memoryMibMin: 256,
  memoryMibMax: 16_384,
  diskMibMin: 512,
  diskMibMax: 65_536,

  envVarsMax: 256,
  envNameChars: 128,
  envValueChars: 65_536,
  /** In UTF-8. With a name of `envNameChars`, '=' and NUL: the 128 KiB of the longest string that Linux takes. */
  envValueBytes: 128 * KIB - 130,

  commandChars: 120_000,
  execTimeoutSecondsMax: 7200,
  /** Output beyond this is dropped and the result is marked truncated. */
  execOutputBytes: 10 * MIB,
  /** Commands that run concurrently in one sandbox. */
  execsPerSandbox: 64,

  /** Open connections to the ports of one sandbox. */
  portConnectionsPerSandbox: 64,
  /** A connection to a port ends when no byte has moved for this long. */
  portIdleSeconds: 300,
  portLinkSecondsDefault: 900,
  portLinkSecondsMax: 3600,

  /** Of a sandbox, as JSON without white space, in UTF-8. */
  metadataBytes: 16_384,

  pathBytes: 4096,
  /** Of a new entry of a workspace. PostgreSQL indexes no more than about 2,670 bytes that it cannot compress. */
  storedPathBytes: 2_560,
  pathComponentBytes: 255,

  logLinesDefault: 100,
  logLinesMax: 10_000,
  logBytesMax: MIB,

  idempotencyKeyChars: 255,
  idempotencySeconds: 86_400,

  secretBundlesPerTenant: 50,
  secretKeysPerBundle: 50,
  /** Maximum UTF-8 size of each value. */
  secretValueBytes: 65_536,
  /** Of a key for a model endpoint. Servers commonly refuse a header line of more than 8 KiB. */
  llmKeyChars: 8192,

  sessionTtlSecondsDefault: 3600,
  /** Longer times are clamped to this value. */
  sessionTtlSecondsCap: 7200,
  /** The sandbox of a session ends after this long without an attached client or a running task. */
  sessionIdleSeconds: 900,
  bundlesPerSession: 10,
  /** The bundle values that are environment variables, as the kernel counts them. It takes 6 MiB with all arguments. */
  sessionEnvBytes: 4 * MIB,
  /** A larger client frame is answered with an error. */
  clientFrameBytes: MIB,
  /** Largest picture of a desktop; a PNG above becomes a JPEG. */
  screenshotBytes: 2 * MIB,
  /** Pictures a second of a live view, and the quality of their JPEGs. */
  viewFpsDefault: 3,
  viewFpsMax: 5,
  viewQualityMin: 20,
  viewQualityDefault: 70,
  viewQualityMax: 90,
  /** A live view consists of square tiles of this size, cut off at the right and lower edges of the display. */
  viewTilePixels: 128,
  /** Largest picture of a tile. */
  viewTileBytes: 64 * KIB,
  /** An update of a live view that has reached this size gets no further tile. */
  viewUpdateBytes: 128 * KIB,
  /** Updates of a live view that a client may have left unacknowledged; it gets no other until it confirms one. */
  viewUnacknowledged: 2,
  /** Bytes of live views that one client is sent in a second, and all clients of a session together. */
  viewBytesPerSecondAndClient: MIB,
  viewBytesPerSecondAndSession: 4 * MIB,
  /** WebSockets attached to one session at the same time. */
  clientsPerSession: 64,
  /** Tasks that wait behind the running one. */
  queuedTasks: 8,
  keepaliveIntervalMs: 30_000,
  /** Working files over this size are not kept for a resume. */
  sessionFilesBytes: GIB,
  /** The files of sessions are stored in chunks of at most, and but for the last at least, this size. */
  chunkBytes: MIB,
  chunkMinBytes: 64 * KIB,
  /** Frames kept for `after_seq`; the oldest are dropped first. */
  sessionHistoryBytes: 16 * MIB,
  /** Numbers of frames that a start of a session reserves at a time. */
  frameNumbersBlock: 100_000,

  apiKeyNameChars: 64,

  /** Samples in one usage report of a worker. */
  usageBatch: 500,
  /** Days that one request for daily usage may cover. */
  usageDaysMax: 3_660,

  /** Uploads to workspaces that one account may have open. */
  openUploads: 1000,
  /** Files, directories and symbolic links in one workspace. */
  workspaceEntries: 500_000,
  /** Extents of one file in a workspace. */
  workspaceFileExtents: 65_536,
  /** Entries of a workspace in one page between worker and control plane. */
  workspacePage: 1000,
  /** Changes of one flush, and extents in them. */
  workspaceFlushChanges: 50_000,
  workspaceFlushExtents: 1_000_000,

  pageDefault: 20,
  pageMax: 100,

  /** Smallest and largest purchase or top-up. */
  paymentCentsMin: 500,
  paymentCentsMax: 1_000_000,

  emailChars: 254,
  otpDigits: 6,
  otpSeconds: 600,
  otpWrongTries: 5,
} as const;

/** Defaults of the limits that an operator can change with `SVC_LIMIT_*`. */
export const DEFAULT_LIMITS = {
  otpPerEmailPerHour: 3,
  otpPerIpPerHour: 20,
  otpWrongPerIpPerHour: 30,
  templatesPerMinute: 120,
  sandboxesPerTenant: 100,
  sessionsPerTenant: 1_000,
  sessionBytesPerTenant: 10 * GIB,
  savedBytesPerSecond: 32 * MIB,
  viewBytesPerSecond: 16 * MIB,
  outputBytesPerSecond: 8 * MIB,
  apiKeysPerTenant: 100,
  requestsPerTenant: 512,
  operationsPerTenant: 64,
  callsPerTenant: 64,
  portConnectionsPerTenant: 256,
  webSocketsPerTenant: 256,
  uploadBytes: 1024 * MIB,
  /** All workspaces of one account. */
  workspaceBytes: 100 * 1024 * MIB,
  workspaceEntries: 5_000_000,
  workspacesPerTenant: 10_000,
} as const;
