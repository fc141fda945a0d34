import type { Route } from '../../services.ts';
import { createSession } from './create.ts';
import { deleteSession } from './delete.ts';
import { getSession } from './get.ts';
import { listSessions } from './list.ts';
import { resumeSession } from './resume.ts';

export const sessionRoutes: readonly Route[] = [
  createSession,
  resumeSession,
  listSessions,
  getSession,
  deleteSession,
];
