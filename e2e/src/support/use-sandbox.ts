import type { CallOptions, CreateSandboxRequest, ExecRequest, ExecResponse } from '@svc/sdk';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Access } from './access.ts';
import type { Account } from './accounts.ts';
import { shared } from './shared-service.ts';

/** Longer than any test file runs: a sandbox ends when its test says so. */
const KEPT = { template: 'standard', idle_timeout_seconds: 3600 } as const;

/** A sandbox that the tests of one file share. */
export class TestSandbox {
  readonly account: Account;
  readonly id: string;
  readonly hostPort: number;
  readonly endpoint: string | undefined;

  private constructor(
    account: Account,
    made: { vm_id: string; host_port: number; endpoint?: string },
  ) {
    this.account = account;
    this.id = made.vm_id;
    this.hostPort = made.host_port;
    this.endpoint = made.endpoint;
  }

  /** Creates one for an account. */
  static async create(
    account: Account,
    request: Partial<CreateSandboxRequest> = {},
  ): Promise<TestSandbox> {
    return new TestSandbox(account, await account.client.sandboxes.create({ ...KEPT, ...request }));
  }

  async exec(request: string | ExecRequest, options?: CallOptions): Promise<ExecResponse> {
    return this.account.client.sandboxes.exec(this.id, request, options);
  }

  /** What a command prints, without white space around it; fails when its exit code is not 0. */
  async run(command: string): Promise<string> {
    const { output, exit_code } = await this.exec(command);
    expect(exit_code, `${command}\n${output}`).toBe(0);
    return output.trim();
  }

  async delete(): Promise<void> {
    await this.account.client.sandboxes.delete(this.id);
  }
}

/** Has a sandbox of an own account there for all tests of the file; returns how to get at it. */
export function useSandbox(
  request: Partial<CreateSandboxRequest> = {},
  access: Access = shared,
): () => TestSandbox {
  let sandbox: TestSandbox | undefined;
  beforeAll(async () => {
    sandbox = await TestSandbox.create(await access.signUp(), request);
  });
  afterAll(async () => {
    await sandbox?.delete();
    await sandbox?.account.client.close();
  });
  return () => {
    if (sandbox === undefined) throw new Error('only while tests run');
    return sandbox;
  };
}
