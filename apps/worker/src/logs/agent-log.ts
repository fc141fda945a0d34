import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogsResponse, LogTail } from '@svc/contract';
import { tailOf } from './tail.ts';

const EMPTY: LogsResponse = { content: '', truncated: false, total_bytes: 0 };

/** Where the stderr log of a sandbox's agent is kept on this worker. */
export function agentLogPath(logDirectory: string, vmId: string): string {
  return join(logDirectory, `${vmId}.stderr.log`);
}

/** The tail of a sandbox's agent log; empty when no agent has run. */
export async function readAgentLog(path: string, wanted: LogTail): Promise<LogsResponse> {
  const file = await openIfPresent(path);
  if (file === undefined) return EMPTY;
  try {
    return await tailOf(file, wanted);
  } finally {
    await file.close();
  }
}

async function openIfPresent(path: string) {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
