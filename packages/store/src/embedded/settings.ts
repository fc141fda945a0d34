/** Settings of the embedded server: a small database that must not lose committed data. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '',
  max_connections: '100',
  shared_buffers: '32MB',
  max_wal_size: '256MB',
  fsync: 'on',
  synchronous_commit: 'on',
  max_wal_senders: '0',
  max_logical_replication_workers: '0',
  max_parallel_workers: '0',
  io_method: 'sync',
  jit: 'off',
  log_checkpoints: 'off',
  timezone: 'UTC',
  lc_messages: 'C',
  log_timezone: 'UTC',
};

/**
 * Arguments of `postgres` for a server that listens only on a Unix socket in `socketDirectory`.
 * @param usesArchive whether its write-ahead log has to have all that an archive needs
 * @param changes settings that differ from the usual ones
 */
export function serverArguments(
  socketDirectory: string,
  usesArchive: boolean,
  changes: Readonly<Record<string, string>>,
): string[] {
  const settings = {
    ...SETTINGS,
    ...changes,
    wal_level: usesArchive ? 'replica' : 'minimal',
    unix_socket_directories: socketDirectory,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}
