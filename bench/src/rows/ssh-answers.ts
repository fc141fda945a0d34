/** What "until SSH answers" means in the rows that time a create. */
export const SSH_ANSWERS =
  'SSH answers when the guest’s server has answered a request to authenticate. The snapshot holds no key: ' +
  'the bare restore ends with the refusal, ours goes on to an authenticated session before its 201.';
