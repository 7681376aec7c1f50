/** The console was configured in a way that would not protect, or not work. */
export class ConsoleOptionError extends TypeError {
  readonly code = 'OPTION_INVALID' as const
  override readonly name = 'ConsoleOptionError' as const
}
