export { endWith, type LogEnd, readLogEnd, tailOf } from './log-tail.ts';
