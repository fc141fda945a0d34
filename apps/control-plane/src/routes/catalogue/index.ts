import type { Route } from '../../services.ts';
import { getTemplate } from './get.ts';
import { listTemplates } from './list.ts';

export const catalogueRoutes: readonly Route[] = [listTemplates, getTemplate];
