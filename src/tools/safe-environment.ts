/** Variables that programs need and that say nothing secret. */
const ALLOWED =
  /^(PATH|HOME|USER|USERNAME|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TERM|COLORTERM|TZ|TMPDIR|TEMP|TMP|EDITOR|PAGER|CI|NO_COLOR|FORCE_COLOR|XDG_[A-Z_]+|JAVA_HOME|GOPATH|GOROOT|CARGO_HOME|RUSTUP_HOME|NVM_DIR|NVM_BIN|VIRTUAL_ENV|PYTHONPATH|NODE_PATH|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|APPDATA|LOCALAPPDATA|PROGRAMFILES|USERPROFILE)$/i

/** Names that look like secrets are left out even where the list above would let them through. */
const SECRET = /KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PRIVATE|SESSION_ID|DSN/i

/**
 * The environment for a program that a model may control: what programs need, and what the owner adds by name.
 * API keys of this process are not in it.
 */
export function safeEnvironment(
  added: Readonly<Record<string, string>> = {},
  from: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const kept = Object.entries(from).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      ALLOWED.test(entry[0]) &&
      !SECRET.test(entry[0]) &&
      !entry[1].startsWith('()'),
  )
  return { ...Object.fromEntries(kept), ...added }
}
