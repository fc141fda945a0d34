/** The agent's files: restored when a session is resumed, saved after each turn that changed some. */
export { FilesError, SessionFiles, type SessionFilesOptions } from './session-files.ts';
