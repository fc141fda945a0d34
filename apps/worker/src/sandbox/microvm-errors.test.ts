import { ServiceError } from '@svc/contract';
import { MicrovmError, type MicrovmErrorCode } from '@svc/microvm';
import { expect, test } from 'vitest';
import { toCreateError, toSandboxError } from './microvm-errors.ts';

const IN_SANDBOX: Readonly<Record<MicrovmErrorCode, string>> = {
  unknown_template: 'unknown_template',
  no_capacity: 'no_capacity',
  disk_full: 'disk_full',
  host_disk_full: 'disk_full',
  boot_failed: 'boot_failed',
  vm_gone: 'sandbox_not_running',
  guest_unreachable: 'guest_unresponsive',
  timeout: 'guest_unresponsive',
  aborted: 'guest_unresponsive',
  parent_not_found: 'parent_not_found',
  parent_not_directory: 'parent_not_directory',
  symlink_loop: 'symlink_loop',
  cwd_not_found: 'cwd_not_found',
  is_directory: 'is_directory',
  file_not_found: 'file_not_found',
  not_a_file: 'not_regular_file',
  permission_denied: 'invalid_path',
  port_unreachable: 'port_unreachable',
  pause_failed: 'guest_unresponsive',
  resume_failed: 'guest_unresponsive',
  internal: 'internal_error',
};
const withCode = (code: unknown) => Object.assign(new Error('failed'), { code });

test.each(Object.entries(IN_SANDBOX))('%s in a sandbox is %s', (from, code) => {
  const cause = new MicrovmError(from as MicrovmErrorCode, 'no');
  const error = toSandboxError(cause);
  expect(error).toBeInstanceOf(ServiceError);
  expect(error).toMatchObject({ code, cause });
});

test('a deadline in a sandbox is an unresponsive guest; other errors stay as they are', () => {
  const deadline = new DOMException('late', 'TimeoutError');
  expect(toSandboxError(deadline)).toMatchObject({ code: 'guest_unresponsive', cause: deadline });
  const late = Object.assign(new Error('late'), { name: 'TimeoutError' });
  for (const error of [new DOMException('left', 'AbortError'), late, new Error('x'), undefined]) {
    expect(toSandboxError(error)).toBe(error);
  }
});

test.each([
  ['unknown_template', 'unknown_template'],
  ['no_capacity', 'no_capacity'],
  ['disk_full', 'no_capacity'],
  ['host_disk_full', 'no_capacity'],
  ['ENOSPC', 'no_capacity'],
  ['EDQUOT', 'no_capacity'],
  ['ENOMEM', 'no_capacity'],
  ['boot_failed', 'boot_failed'],
  ['EACCES', 'boot_failed'],
  [28, 'boot_failed'],
])('%s of a VM that cannot be made is %s', (from, code) => {
  expect(toCreateError(withCode(from))).toMatchObject({ code });
});

test('what is no error with a code makes a VM that cannot be made a failed boot', () => {
  for (const error of [new Error('x'), 'text', { code: 'ENOSPC' }]) {
    expect(toCreateError(error)).toMatchObject({ code: 'boot_failed', cause: error });
  }
  const known = new ServiceError('workspace_too_large');
  expect(toCreateError(known)).toBe(known);
});
