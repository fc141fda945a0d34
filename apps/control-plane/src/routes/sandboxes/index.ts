import type { Route } from '../../services.ts';
import { cancelSandbox } from './cancel.ts';
import { connectSandbox } from './connect.ts';
import { createSandbox } from './create.ts';
import { createPortLink } from './create-link.ts';
import { deleteSandbox } from './delete.ts';
import { downloadFile } from './download.ts';
import { execInSandbox } from './exec.ts';
import { getSandbox } from './get.ts';
import { listSandboxes } from './list.ts';
import { readSandboxLogs } from './logs.ts';
import { pauseSandbox } from './pause.ts';
import { sandboxPort } from './port.ts';
import { resumeSandbox } from './resume.ts';
import { uploadFile } from './upload.ts';

export const sandboxRoutes: readonly Route[] = [
  createSandbox,
  listSandboxes,
  getSandbox,
  deleteSandbox,
  execInSandbox,
  readSandboxLogs,
  downloadFile,
  uploadFile,
  connectSandbox,
  cancelSandbox,
  pauseSandbox,
  resumeSandbox,
  createPortLink,
  sandboxPort,
];
