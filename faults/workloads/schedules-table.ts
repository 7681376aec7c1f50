/** How often it ticks: seldom enough that whoever fires it comes to an end, on a busy machine too. */
export const tickMs = 500
export const scheduleName = 'faults-tick'

/** What every tick leaves behind. */
export const schedulesTable = `CREATE TABLE tick_effect (tick timestamptz NOT NULL, attempt int NOT NULL)`
