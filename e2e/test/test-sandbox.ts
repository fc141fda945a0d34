import type { CallOptions, CreateSandboxRequest, ExecRequest, ExecResponse } from '@svc/sdk';
import { afterAll, beforeAll, expect } from 'vitest';
import { shared } from './shared-service.ts';
import type { Account } from './sign-up.ts';

/** An idle timeout longer than any test file runs. */
const LASTING = { template: 'standard', idle_timeout_seconds: 3600 } as const;

/** A sandbox of a test. */
export class TestSandbox {
  readonly account: Account;
  readonly id: string;
  readonly hostPort: number;
  readonly endpoint: string | undefined;

  private constructor(
    account: Account,
    created: { vm_id: string; host_port: number; endpoint?: string },
  ) {
    this.account = account;
    this.id = created.vm_id;
    this.hostPort = created.host_port;
    this.endpoint = created.endpoint;
  }

  static async create(
    account: Account,
    request: Partial<CreateSandboxRequest> = {},
  ): Promise<TestSandbox> {
    return new TestSandbox(
      account,
      await account.client.sandboxes.create({ ...LASTING, ...request }),
    );
  }

  async exec(request: string | ExecRequest, options?: CallOptions): Promise<ExecResponse> {
    return this.account.client.sandboxes.exec(this.id, request, options);
  }

  /** Runs a command and returns its output without surrounding white space. Fails unless the exit code is 0. */
  async run(command: string): Promise<string> {
    const { output, exit_code } = await this.exec(command);
    expect(exit_code, `${command}\n${output}`).toBe(0);
    return output.trim();
  }

  async delete(): Promise<void> {
    await this.account.client.sandboxes.delete(this.id);
  }
}

/** Creates a sandbox with an account of its own on the shared service for all tests of a file. */
export function useSandbox(request: Partial<CreateSandboxRequest> = {}): () => TestSandbox {
  let sandbox: TestSandbox | undefined;
  beforeAll(async () => {
    sandbox = await TestSandbox.create(await shared.signUp(), request);
  });
  afterAll(async () => {
    await sandbox?.delete();
    await sandbox?.account.client.close();
  });
  return () => {
    if (sandbox === undefined) throw new Error('the sandbox exists only while tests run');
    return sandbox;
  };
}
