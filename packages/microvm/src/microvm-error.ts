/** Every way in which an operation on a micro-VM can fail. The codes are stable, so callers may branch on them. */
export type MicrovmErrorCode =
  | 'unknown_template'
  | 'no_capacity'
  | 'disk_full'
  /** The disk of the machine that runs the VM is full. */
  | 'host_disk_full'
  | 'boot_failed'
  | 'vm_gone'
  /** The VM is running, but its guest does not answer or has dropped the connection. */
  | 'guest_unreachable'
  | 'timeout'
  | 'aborted'
  | 'parent_not_found'
  | 'parent_not_directory'
  | 'symlink_loop'
  | 'cwd_not_found'
  | 'is_directory'
  | 'file_not_found'
  | 'not_a_file'
  | 'permission_denied'
  /** Nothing listens on this port of the guest. */
  | 'port_unreachable'
  | 'pause_failed'
  | 'resume_failed'
  | 'internal';

/** A failed operation on a micro-VM. `cause` holds the underlying error. */
export class MicrovmError extends Error {
  override readonly name = 'MicrovmError';
  readonly code: MicrovmErrorCode;

  constructor(code: MicrovmErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
