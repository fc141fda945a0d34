/** The agent's files: brought back at the start of a resumed session, saved after each turn that changed some. */
export { FilesError, SessionFiles, type SessionFilesOptions } from './session-files.ts';
