import type { Route } from '../../services.ts';
import { currentUsage } from './current.ts';
import { usageHistory } from './history.ts';

export const usageRoutes: readonly Route[] = [currentUsage, usageHistory];
