-- Applies operations, in order, each all or nothing; one call is one round trip.
--
-- Every array has one element per line; the lines of one operation follow each other and share
-- their number in "ops". A null array is a column of nulls.
--
--   1. One look without locks: the lines, and which accounts are missing or already too short.
--   2. Missing accounts are opened, in a statement of their own, in the order of the primary key.
--   3. The balance rows are locked FOR NO KEY UPDATE in that same order. From here on everything
--      that belongs to these accounts is ours.
--   4. Which ids are known: whoever used them before has committed. What is due falls due.
--   5. Decisions, in variables.
--   6. Operation ids; then balances and movements; then holds.
--
-- A refusal is an answer, never an exception, so that the caller's transaction can go on. At
-- REPEATABLE READ a conflict is PostgreSQL's own 40001; one operation id used for two accounts of a
-- scope at the same moment is its 23505.
--
-- flags  1 book it whatever the balance; 2 a walled account; 4 a rolling window
--        8, 16 settle above the hold: 0 book, 1 refuse, 2 cap, 3 if available
--        32, 64 settle after expiry: 0 book, 1 refuse, 2 ignore; 128 remember a refusal for the ttl
--        256 counters and balance have to stay exact as JavaScript numbers; 512 the caller named no scope
--        1024 take less, down to one, if there is not as much
-- answer one line per element: number, status, seq, credited, debited, held, allowance, at, extra
--        0 accepted, extra: what was taken if it is less than asked; 1 replayed; 2 short, extra: when to try again,
--          and after a / how much is for other features; 3 conflict, extra: the field
--        4 no such hold or operation; 5 the hold has ended, extra: its state; 6 too large
--        7 more than is left to give back, extra: what is left; 8 the same id twice in one call
--        9 refused because of another line; 10 refused before, extra: the answer then
CREATE OR REPLACE FUNCTION :"schema".apply(
  ops integer[],
  buckets smallint[],
  bases uuid[],
  owners uuid[],
  ids uuid[],
  operation_ids text[],
  kinds smallint[],
  books text[],
  keys text[],
  scopes text[],
  amounts bigint[],
  allowances bigint[],
  flags integer[],
  home_buckets smallint[],
  notes text[],
  units text[],
  zones text[],
  every_us bigint[],
  ttls_ms bigint[],
  refs text[],
  terms text[]
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_mergejoin = off
SET enable_hashjoin = off
SET enable_memoize = off
SET enable_material = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  largest CONSTANT bigint := 4611686018427387903;
  largest_number CONSTANT bigint := 9007199254740991;
  began CONSTANT timestamptz := clock_timestamp();
  moment timestamptz;
  n integer := cardinality(ops);
  -- Lines: one per element, but for a hold over several accounts one for each of them. A line
  -- that is answered without a lock has no slot.
  l_ord integer[]; l_slot integer[]; l_bucket smallint[]; l_account uuid[]; l_hold uuid[];
  l_known boolean[]; l_denied boolean[]; l_flow bigint[]; l_moved integer[];
  any_denied boolean; any_missing boolean; any_hold boolean; any_due boolean;
  any_several boolean := false; any_new_hold boolean := false; any_ended boolean := false;
  all_valid boolean;
  -- Accounts, in lock order.
  slots integer; expected integer;
  s_bucket smallint[]; s_account uuid[]; s_credited bigint[]; s_debited bigint[]; s_held bigint[];
  s_allowance bigint[]; s_seq bigint[]; s_before bigint[]; s_moved timestamptz[];
  s_due timestamptz[]; s_refilled timestamptz[]; s_walled boolean[]; s_pinned boolean[];
  s_granted boolean[]; s_place tid[]; s_denied boolean[];
  -- Holds that lines name, by line; two lines may name the same one, h_at is the first of them.
  h_at integer[]; h_state smallint[]; h_amount bigint[]; h_settled bigint[]; h_made bigint[];
  h_seq bigint[]; h_expires timestamptz[]; h_ended timestamptz[]; h_operation text[];
  h_changed boolean[]; h_place tid[];
  -- Movements.
  m integer := 0;
  m_line integer[]; m_slot integer[]; m_kind smallint[]; m_seq bigint[];
  m_credit bigint[]; m_debit bigint[]; m_hold bigint[]; m_credited bigint[]; m_debited bigint[];
  m_held bigint[]; m_allowance bigint[]; m_until timestamptz[]; m_main boolean[];
  m_op_line integer[]; m_amount bigint[];
  -- As everything was before an operation of several lines, in case that one of them is refused.
  was_m integer; was_wanted integer;
  was_credited bigint[]; was_debited bigint[]; was_held bigint[]; was_allowance bigint[];
  was_seq bigint[]; was_moved timestamptz[]; was_due timestamptz[]; was_refilled timestamptz[];
  was_state smallint[]; was_settled bigint[]; was_ended_seq bigint[]; was_ended timestamptz[];
  was_expires timestamptz[]; was_changed boolean[];
  statuses smallint[]; extras text[]; shown bigint[]; answers text[];
  first integer; last integer; k integer; i integer; s integer; g integer;
  status smallint; kind smallint; state smallint; flag integer; refused boolean;
  amount bigint; credit bigint; debit bigint; hold bigint; available bigint; allowed bigint;
  standing bigint; flow bigint; every bigint; rest bigint; share bigint; lapsed bigint;
  gone bigint; apart bigint; repeated boolean;
  -- The grant that a line makes, and what it takes for: of a settlement what was put aside for.
  l_grant uuid[]; l_feature text[];
  wanted integer := 0; quiet boolean;
  told text[];
  extra text; until timestamptz; refilled timestamptz; past record;
BEGIN
  IF n IS NULL OR n = 0 THEN RETURN ''; END IF;

  -- 1. One look without locks: first the lines …
  SELECT count(*), array_agg(x.ord), array_agg(x.slot), array_agg(x.bucket), array_agg(x.account),
    array_agg(x.hold), bool_and(x.valid), bool_or(x.hold IS NOT NULL),
    coalesce(max(x.slot), 0)
  INTO n, l_ord, l_slot, l_bucket, l_account, l_hold, all_valid, any_hold, expected
  FROM (
    SELECT w.*, CASE WHEN w.account IS NOT NULL
      THEN dense_rank() OVER (ORDER BY w.bucket, w.account) END AS slot
    FROM (
      SELECT u.ord, coalesce(u.bucket, h.bucket) AS bucket, h.id AS hold,
        CASE WHEN u.kind BETWEEN 4 AND 7 THEN h.account WHEN u.unit IS NULL THEN u.base
          ELSE window_account(u.base, window_start(u.unit, u.zone, began)) END AS account,
        (u.op IS NOT NULL AND u.flag IS NOT NULL
          AND coalesce(u.amount, 0) BETWEEN -largest AND largest
          AND coalesce(u.allowance, 0) BETWEEN 0 AND largest AND coalesce(u.every, 1) > 0
          AND coalesce(u.ttl, 1) BETWEEN 1 AND 100 * 366 * 86400000::bigint
          AND CASE
            WHEN u.kind IN (4, 5, 6) THEN coalesce(u.amount, 0) >= 0 AND u.ref IS NOT NULL
              AND (u.kind <> 6 OR u.ttl IS NOT NULL)
            WHEN u.kind IN (1, 2, 3, 7, 8, 10, 11, 12, 13, 15, 16) THEN
              CASE u.kind WHEN 11 THEN u.amount <> 0 WHEN 10 THEN u.amount = 0 ELSE u.amount > 0 END
              AND u.bucket IS NOT NULL AND u.base IS NOT NULL AND u.owner IS NOT NULL
              AND u.id IS NOT NULL AND u.operation IS NOT NULL AND u.book IS NOT NULL
              AND u.key IS NOT NULL AND u.scope IS NOT NULL
              AND (u.kind <> 3 OR u.ttl IS NOT NULL AND u.ref IS NOT NULL)
              AND (u.kind NOT IN (7, 10) OR u.ref IS NOT NULL)
            END) IS TRUE AS valid
      FROM unnest(
          ops, buckets, bases, owners, ids, operation_ids, kinds, books, keys, scopes, amounts,
          allowances, flags, home_buckets, units, zones, every_us, ttls_ms, refs
        ) WITH ORDINALITY AS u(op, bucket, base, owner, id, operation, kind, book, key, scope,
          amount, allowance, flag, home, unit, zone, every, ttl, ref, ord)
      LEFT JOIN LATERAL (
        -- A hold over several accounts has a row for each.
        SELECT h.bucket, h.id, h.account FROM hold h
        WHERE h.bucket = CASE WHEN u.kind BETWEEN 4 AND 6
            THEN ('x' || left(u.ref, 3))::bit(12)::integer::smallint END
          AND h.id = CASE WHEN u.kind BETWEEN 4 AND 6 THEN substr(u.ref, 5)::uuid END
          AND (u.base IS NULL OR h.account = u.base)
        UNION ALL
        -- What is refunded may have been taken from a window that is over.
        SELECT DISTINCT a.bucket, NULL::uuid, a.id FROM operation o
        JOIN account a ON a.bucket = u.bucket AND a.id = o.account AND a.book = u.book AND a.key = u.key
        WHERE u.kind = 7 AND o.bucket = coalesce(u.home, u.bucket) AND o.owner = u.owner
          AND o.id = CASE WHEN u.kind = 7 THEN u.ref::uuid END
        OFFSET 0
      ) h ON u.kind BETWEEN 4 AND 7
      OFFSET 0
    ) w
    ORDER BY w.ord, slot
  ) x;
  IF NOT all_valid THEN
    RAISE EXCEPTION 'a line of the operation is not valid' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR k IN 2..n LOOP
    IF ops[l_ord[k]] = ops[l_ord[k - 1]] THEN
      any_several := true;
      i := l_ord[k];
      g := l_ord[k - 1];
      IF (ids[i], owners[i], operation_ids[i], coalesce(home_buckets[i], buckets[i]))
        IS DISTINCT FROM (ids[g], owners[g], operation_ids[g], coalesce(home_buckets[g], buckets[g])) THEN
        RAISE EXCEPTION 'the lines of an operation have different ids'
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
    END IF;
  END LOOP;
  IF any_several AND EXISTS (
    SELECT FROM unnest(l_ord, l_slot) AS u(line, slot)
    WHERE u.slot IS NOT NULL
    GROUP BY ops[u.line], u.slot, kinds[u.line], refs[u.line]
    HAVING count(*) > 1
  ) THEN
    RAISE EXCEPTION 'an operation has two lines of one kind for the same account'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;

  -- … then the accounts: which are missing, and which are too short for anything that is asked of them.
  SELECT bool_or(b.seq IS NULL), array_agg(coalesce(b.due_at > began, true) AND (
      SELECT bool_and(kinds[u.line] IN (2, 3, 15) AND flags[u.line] & 129 = 0
        AND can_give(coalesce(b.credited, 0), coalesce(b.debited, 0), coalesce(b.held, 0), b.allowance,
          b.pinned, b.refilled_at, allowances[u.line], every_us[u.line], began)
          < least_of(amounts[u.line], flags[u.line]))
      FROM unnest(x.lines) AS u(line)
    ) ORDER BY x.slot)
  INTO any_missing, s_denied
  FROM (
    SELECT y.slot, y.bucket, y.account, array_agg(y.line) AS lines, (array_agg(bases[y.line]))[1] AS base
    FROM unnest(l_slot, l_bucket, l_account, l_ord) AS y(slot, bucket, account, line)
    WHERE y.slot IS NOT NULL
    GROUP BY y.slot, y.bucket, y.account
  ) x
  LEFT JOIN LATERAL standing(x.bucket, x.account, x.base) b ON true;
  IF any_missing AND EXISTS (
    SELECT FROM unnest(l_bucket, l_account, l_ord) AS u(bucket, account, line)
    WHERE flags[u.line] & 512 <> 0
      AND NOT EXISTS (SELECT FROM balance b WHERE b.bucket = u.bucket AND b.account = u.account)
      AND is_forgotten_scope(books[u.line], keys[u.line], scopes[u.line])
  ) THEN
    RAISE EXCEPTION 'the key is in use in another scope' USING ERRCODE = 'HF006';
  END IF;
  l_denied := array_fill(false, ARRAY[n]);
  answers := array_fill(NULL::text, ARRAY[n]);
  any_denied := coalesce(true = ANY (s_denied), false);
  IF any_denied OR any_missing THEN
    -- What can be answered without a lock does not get one, nor a new account: no line of such an
    -- operation.
    l_known := known_ids(l_ord, home_buckets, buckets, owners, ids, began);
    first := 1;
    WHILE first <= n LOOP
      last := first;
      refused := l_known[first] IS TRUE OR coalesce(s_denied[l_slot[first]], false);
      WHILE last < n AND ops[l_ord[last + 1]] = ops[l_ord[first]] LOOP
        last := last + 1;
        refused := refused OR coalesce(s_denied[l_slot[last]], false);
      END LOOP;
      IF refused THEN
        FOR k IN first..last LOOP
          l_denied[k] := coalesce(s_denied[l_slot[k]], false);
        END LOOP;
        i := l_ord[first];
        told := NULL;
        -- Told of now: later, balances are those of now and grants as other operations of this call leave them.
        IF l_known[first] IS NOT TRUE THEN
          told := refusal(l_ord[first:last], l_bucket[first:last], l_account[first:last],
            bases[i:l_ord[last]], l_denied[first:last], kinds[i:l_ord[last]], amounts[i:l_ord[last]],
            allowances[i:l_ord[last]], flags[i:l_ord[last]], units[i:l_ord[last]], zones[i:l_ord[last]],
            every_us[i:l_ord[last]], notes[i:l_ord[last]], began, NULL);
        END IF;
        IF told IS NULL AND l_known[first] IS NOT TRUE THEN
          -- What came back since the look is enough: decided with the others, under the locks.
          FOR k IN first..last LOOP l_denied[k] := false; END LOOP;
        ELSE
          answers[first:last] := told;
          FOR k IN first..last LOOP l_slot[k] := NULL; END LOOP;
        END IF;
      END IF;
      first := last + 1;
    END LOOP;
    SELECT array_agg(x.slot), coalesce(max(x.slot), 0)
    INTO l_slot, expected
    FROM (
      SELECT CASE WHEN u.slot IS NOT NULL
        THEN dense_rank() OVER (PARTITION BY u.slot IS NULL ORDER BY u.bucket, u.account) END AS slot
      FROM unnest(l_slot, l_bucket, l_account) WITH ORDINALITY AS u(slot, bucket, account, ord)
      ORDER BY u.ord
    ) x;
  END IF;

  IF expected > 0 THEN
    -- 2. Missing accounts. Opening one that exists does nothing.
    IF any_missing THEN
      PERFORM open_account(u.bucket, u.account, bases[u.ord], books[u.ord], keys[u.ord],
        scopes[u.ord], units[u.ord], zones[u.ord],
        CASE WHEN every_us[u.ord] IS NULL THEN coalesce(allowances[u.ord], 0) ELSE 0 END,
        flags[u.ord] & 2 <> 0, began)
      FROM (
        SELECT DISTINCT ON (x.bucket, x.account) x.bucket, x.account, x.ord
        FROM unnest(l_bucket, l_account, l_ord, l_slot) AS x(bucket, account, ord, slot)
        LEFT JOIN LATERAL (
          SELECT b.seq FROM balance b WHERE b.bucket = x.bucket AND b.account = x.account OFFSET 0
        ) b ON true
        WHERE x.slot IS NOT NULL AND b.seq IS NULL
        ORDER BY x.bucket, x.account, x.ord
      ) u;
    END IF;

    -- 3. The locks.
    SELECT count(*), array_agg(x.bucket), array_agg(x.account), array_agg(x.credited),
      array_agg(x.debited), array_agg(x.held), array_agg(x.allowance), array_agg(x.seq),
      array_agg(x.moved_at), array_agg(x.due_at), array_agg(x.refilled_at), array_agg(x.walled),
      array_agg(x.pinned), array_agg(x.granted), array_agg(x.place),
      bool_or(x.due_at <= clock_timestamp())
    INTO slots, s_bucket, s_account, s_credited, s_debited, s_held, s_allowance, s_seq, s_moved,
      s_due, s_refilled, s_walled, s_pinned, s_granted, s_place, any_due
    FROM (
      SELECT b.*
      FROM (
        SELECT DISTINCT x.bucket, x.account
        FROM unnest(l_bucket, l_account, l_slot) AS x(bucket, account, slot)
        WHERE x.slot IS NOT NULL
        ORDER BY x.bucket, x.account
      ) u
      CROSS JOIN LATERAL (
        SELECT b.ctid AS place, b.* FROM balance b
        WHERE b.bucket = u.bucket AND b.account = u.account
        FOR NO KEY UPDATE OF b
      ) b
    ) x;
    IF slots <> expected THEN
      RAISE EXCEPTION 'an account vanished while it was being locked'
        USING ERRCODE = 'serialization_failure';
    END IF;
  END IF;

  -- 4. What is known about the ids, looked up after the locks: whoever had them before has
  -- committed. Then what is due falls due.
  l_known := known_ids(l_ord, home_buckets, buckets, owners, ids, began);
  IF expected > 0 THEN
    IF any_due THEN
      FOR s IN 1..slots LOOP
        CONTINUE WHEN s_due[s] > clock_timestamp();
        PERFORM fall_due(s_bucket[s], s_account[s]);
        SELECT b.ctid AS place, b.* INTO past
        FROM balance b
        WHERE b.bucket = s_bucket[s] AND b.account = s_account[s];
        s_credited[s] := past.credited;
        s_debited[s] := past.debited;
        s_held[s] := past.held;
        s_seq[s] := past.seq;
        s_moved[s] := past.moved_at;
        s_due[s] := past.due_at;
        s_place[s] := past.place;
      END LOOP;
    END IF;
    s_before := s_seq;
    IF any_hold THEN
      SELECT array_agg(x.first), array_agg(x.state), array_agg(x.amount), array_agg(x.settled),
        array_agg(x.made_seq), array_agg(x.seq), array_agg(x.expires_at), array_agg(x.ended_at),
        array_agg(x.operation_id), array_agg(x.place), array_agg(false)
      INTO h_at, h_state, h_amount, h_settled, h_made, h_seq, h_expires, h_ended, h_operation,
        h_place, h_changed
      FROM (
        SELECT h.*,
          min(u.ord) OVER (PARTITION BY u.bucket, u.hold, u.account) AS first
        FROM unnest(l_bucket, l_hold, l_account) WITH ORDINALITY AS u(bucket, hold, account, ord)
        LEFT JOIN LATERAL (
          SELECT h.ctid AS place, h.* FROM hold h
          WHERE h.bucket = u.bucket AND h.id = u.hold AND h.account = u.account
          OFFSET 0
        ) h ON true
        ORDER BY u.ord
      ) x;
    END IF;
  END IF;
  -- Later than whatever the locks waited for.
  moment := clock_timestamp();

  -- 5. Decisions.
  first := 1;
  WHILE first <= n LOOP
    last := first;
    WHILE last < n AND ops[l_ord[last + 1]] = ops[l_ord[first]] LOOP
      last := last + 1;
    END LOOP;
    i := l_ord[first];
    IF l_known[first] IS TRUE THEN
      told := replay(coalesce(home_buckets[i], buckets[i]), owners[i], ids[i],
        operation_ids[i], l_ord[first:last], kinds[i:l_ord[last]], buckets[i:l_ord[last]],
        bases[i:l_ord[last]], amounts[i:l_ord[last]], flags[i:l_ord[last]], notes[i:l_ord[last]],
        refs[i:l_ord[last]]);
    ELSE
      told := NULL;
    END IF;
    IF told IS NULL AND true = ANY (l_denied[first:last]) THEN
      told := answers[first:last];
    ELSIF told[1] LIKE '=%' THEN
      told := refusal(l_ord[first:last], l_bucket[first:last], l_account[first:last],
        bases[i:l_ord[last]], l_denied[first:last], kinds[i:l_ord[last]], amounts[i:l_ord[last]], allowances[i:l_ord[last]],
        flags[i:l_ord[last]], units[i:l_ord[last]], zones[i:l_ord[last]], every_us[i:l_ord[last]],
        notes[i:l_ord[last]], moment, substr(told[1], 2));
    END IF;
    IF told IS NOT NULL THEN
      answers[first:last] := told;
      first := last + 1;
      CONTINUE;
    END IF;

    IF l_known[first] IS FALSE THEN
      DELETE FROM operation o
      WHERE o.bucket = coalesce(home_buckets[i], buckets[i]) AND o.owner = owners[i]
        AND o.id = ids[i] AND o.refused_until <= began;
    END IF;
    was_m := m;
    was_wanted := wanted;
    IF last > first THEN
      was_credited := s_credited; was_debited := s_debited; was_held := s_held;
      was_allowance := s_allowance; was_seq := s_seq; was_moved := s_moved; was_due := s_due;
      was_refilled := s_refilled;
      was_state := h_state; was_settled := h_settled; was_ended_seq := h_seq; was_ended := h_ended;
      was_expires := h_expires; was_changed := h_changed;
    END IF;
    refused := false;
    repeated := false;
    FOR k IN first..last LOOP
      i := l_ord[k];
      s := l_slot[k];
      -- A transfer takes as a debit does, and gives as a credit or, where there are terms, a grant.
      kind := CASE kinds[i] WHEN 15 THEN 2 WHEN 16 THEN CASE WHEN terms[i] IS NULL THEN 1 ELSE 8 END
        ELSE kinds[i] END;
      amount := amounts[i];
      flag := flags[i];
      every := every_us[i];
      status := 0;
      extra := NULL;
      until := NULL;
      credit := 0;
      debit := 0;
      hold := 0;
      flow := 0;
      allowed := 0;
      apart := 0;
      quiet := false;
      IF s IS NULL THEN
        status := 4;
      ELSE
        standing := s_credited[s] - s_debited[s] - s_held[s];
        allowed := limit_of(s_allowance[s], s_pinned[s], s_refilled[s], allowances[i], every);
        available := can_give(s_credited[s], s_debited[s], s_held[s], s_allowance[s], s_pinned[s],
          s_refilled[s], allowances[i], every, moment);
        refilled := s_refilled[s];
        IF every IS NOT NULL THEN
          -- A rate limit: what flows in is booked with what is taken, and what spills over too.
          flow := available - standing;
          credit := greatest(flow, 0);
          debit := greatest(-flow, 0);
          refilled := CASE WHEN flow = allowed - standing THEN greatest(moment, refilled)
            ELSE refilled + flow * every * interval '1 microsecond' END;
        END IF;
        IF kind IN (2, 3, 4, 11) AND (s_granted[s] OR s = ANY (m_slot[was_m + 1:m])) THEN
          -- What is restricted to other features is not for this one, nor for a transfer. And what comes in by the same
          -- operation is not there yet: it may be restricted, or lapse.
          l_feature[k] := CASE WHEN kind = 4 THEN feature_of(l_bucket[k], l_account[k], h_made[h_at[k]])
            WHEN kinds[i] <> 15 THEN notes[i]::jsonb ->> 'feature' END;
          apart := set_apart(l_bucket[k], l_account[k], l_feature[k]);
          FOR g IN was_m + 1..m LOOP
            IF m_slot[g] = s AND m_credit[g] > m_debit[g] + m_hold[g] AND (s_granted[s] OR m_kind[g] = 8) THEN
              apart := apart + m_credit[g] - m_debit[g] - m_hold[g];
            END IF;
          END LOOP;
          available := available - apart;
        END IF;

        IF kind = 8 THEN
          -- Ids are unique in the scope and book that the operation belongs to, and another one may have granted here.
          l_grant[k] := CASE WHEN owners[i] = key_account(scopes[i], books[i], scopes[i]) THEN ids[i]
            ELSE hash_name(concat(owners[i], ':', ids[i])) END;
        END IF;

        IF kind = 2 OR kind = 11 AND amount < 0 THEN
          IF flag & 1024 <> 0 THEN amount := least(amount, greatest(available, 1)); END IF;
          debit := debit + abs(amount);
          IF available < abs(amount) AND (flag & 1 = 0 OR s_walled[s]) THEN
            status := 2;
          ELSIF amount <> amounts[i] THEN
            extra := amount;
          END IF;
        ELSIF kind = 3 THEN
          hold := amount;
          until := moment + ttls_ms[i] * interval '1 millisecond';
          IF available < hold AND (flag & 1 = 0 OR s_walled[s]) THEN
            status := 2;
          ELSE
            extra := micros(until);
          END IF;
        ELSIF kind IN (1, 11, 12, 13) THEN
          credit := credit + amount;
        ELSIF kind = 8 AND EXISTS (
          SELECT FROM credit_grant c
          WHERE c.bucket = l_bucket[k] AND c.account = l_account[k] AND c.id = l_grant[k]
        ) THEN
          -- A grant is known by its id for as long as it is kept, also when the operation is forgotten.
          quiet := true;
          repeated := true;
          SELECT CASE WHEN c.amount = amounts[i] THEN 1 ELSE 3 END,
            CASE WHEN c.amount <> amounts[i] THEN 'amount' END
          INTO status, extra
          FROM credit_grant c
          WHERE c.bucket = l_bucket[k] AND c.account = l_account[k] AND c.id = l_grant[k];
        ELSIF kind = 8 THEN
          until := (terms[i]::jsonb ->> 'effective_at')::timestamptz;
          IF until IS NULL OR until <= moment THEN
            credit := credit + amount;
            until := coalesce((terms[i]::jsonb ->> 'expires_at')::timestamptz,
              moment + (terms[i]::jsonb ->> 'expires_in_ms')::bigint * interval '1 millisecond');
          END IF;
        ELSIF kind = 10 THEN
          -- Of a grant that has not begun, nothing was credited yet.
          SELECT CASE WHEN c.state = 0 THEN 0 ELSE c.remaining END, c.state INTO debit, state
          FROM credit_grant c
          WHERE c.bucket = l_bucket[k] AND c.account = l_account[k] AND c.id = refs[i]::uuid;
          IF NOT FOUND THEN
            status := 4;
          ELSIF state > 1 THEN
            status := 5;
            extra := CASE WHEN state = 2 THEN 3 ELSE 5 END;
          END IF;
        ELSIF kind = 7 THEN
          credit := credit + amount;
          SELECT sum(o.rest) INTO rest
          FROM returnable(coalesce(home_buckets[i], buckets[i]), owners[i], refs[i]::uuid, l_bucket[k],
            l_account[k]) o;
          IF rest IS NULL THEN
            status := 4;
          ELSIF rest < amount THEN
            status := 7;
            extra := rest;
          END IF;
        ELSIF kind = 6 THEN
          g := h_at[k];
          IF h_state[g] <> 0 THEN
            status := 5;
            extra := h_state[g];
          END IF;
        ELSIF kind = 5 THEN
          g := h_at[k];
          CASE h_state[g]
            WHEN 0 THEN hold := -h_amount[g];
            WHEN 2 THEN status := 1;
            ELSE status := 5; extra := h_state[g];
          END CASE;
        ELSIF kind = 4 THEN
          g := h_at[k];
          state := h_state[g];
          amount := coalesce(amount, h_amount[g]);
          IF flag & 24 = 16 THEN amount := least(amount, h_amount[g]); END IF;
          IF state IN (0, 3) THEN
            -- After expiry the held amount has gone back already.
            hold := CASE WHEN state = 0 THEN -h_amount[g] ELSE 0 END;
            debit := amount;
            IF state = 3 AND flag & 96 = 32 OR state = 3 AND s_walled[s] AND available < debit THEN
              status := 5;
              extra := state;
            ELSIF state = 3 AND flag & 96 = 64 THEN
              quiet := true;
            ELSIF amount > h_amount[g] AND (flag & 24 = 8
              OR (flag & 24 = 24 OR s_walled[s]) AND available - hold < debit) THEN
              status := 2;
            END IF;
          ELSIF state IN (1, 4) AND h_settled[g] = amount THEN
            status := 1;
          ELSIF state IN (1, 4) THEN
            status := 3;
            extra := 'amount';
          ELSE
            status := 5;
            extra := state;
          END IF;
        ELSE
          status := 4;
        END IF;
        IF status = 0 AND (greatest(s_credited[s] + credit, s_debited[s] + debit, s_held[s] + hold) > largest
          OR flag & 256 <> 0 AND greatest(s_credited[s] + credit + allowed,
            s_debited[s] + debit + s_held[s] + hold) > largest_number) THEN
          status := 6;
        END IF;
      END IF;

      IF status = 0 AND kind = 6 THEN
        h_expires[g] := greatest(h_expires[g], moment + ttls_ms[i] * interval '1 millisecond');
        h_changed[g] := true;
        any_ended := true;
        extra := micros(h_expires[g]);
      ELSIF status = 0 AND NOT quiet THEN
        m := m + 1;
        s_credited[s] := s_credited[s] + credit;
        s_debited[s] := s_debited[s] + debit;
        s_held[s] := s_held[s] + hold;
        s_seq[s] := s_seq[s] + 1;
        s_moved[s] := greatest(s_moved[s], moment);
        s_refilled[s] := refilled;
        IF s_walled[s] THEN
          -- A lower backorder only stops what comes next.
          s_allowance[s] := greatest(allowed, s_debited[s] + s_held[s] - s_credited[s]);
        ELSIF every IS NULL THEN
          s_allowance[s] := allowed;
        ELSIF NOT s_pinned[s] THEN
          -- What can be taken at a rate is in the balance, also if the account had an allowance before.
          s_allowance[s] := 0;
        END IF;
        m_line[m] := k;
        m_slot[m] := s;
        m_kind[m] := kind;
        m_amount[m] := amount;
        m_seq[m] := s_seq[s];
        m_credit[m] := credit;
        m_debit[m] := debit;
        m_hold[m] := hold;
        m_credited[m] := s_credited[s];
        m_debited[m] := s_debited[s];
        m_held[m] := s_held[s];
        m_allowance[m] := s_allowance[s];
        m_until[m] := until;
        m_main[m] := true;
        m_op_line[m] := k - first;
        IF kind NOT IN (4, 5) THEN wanted := wanted + 1; END IF;
        IF until IS NOT NULL THEN
          s_due[s] := least(s_due[s], until);
        END IF;
        IF kind = 3 THEN
          any_new_hold := true;
        ELSIF kind IN (4, 5) THEN
          h_settled[g] := CASE WHEN kind = 4 THEN debit END;
          h_state[g] := CASE WHEN kind = 5 THEN 2 WHEN state = 3 THEN 4 ELSE 1 END;
          h_seq[g] := s_seq[s];
          h_ended[g] := s_moved[s];
          h_changed[g] := true;
          any_ended := true;
        END IF;
      ELSIF status = 2 AND every IS NULL AND debit + hold <= allowed THEN
        IF flag & 4 <> 0 THEN
          SELECT rolled_on_at(l_bucket[k], l_account[k], debit + hold - available,
            array_agg(x.amount ORDER BY x.until) FILTER (WHERE x.until IS NOT NULL),
            array_agg(x.until ORDER BY x.until) FILTER (WHERE x.until IS NOT NULL),
            array_agg(x.place) FILTER (WHERE x.place IS NOT NULL))
          INTO extra
          FROM (
            SELECT u.hold AS amount, u.until, NULL::tid AS place
            FROM unnest(m_slot[1:m], m_kind[1:m], m_hold[1:m], m_until[1:m]) AS u(slot, kind, hold, until)
            WHERE u.slot = s AND u.kind = 3
            UNION ALL
            SELECT u.amount, CASE WHEN u.state = 0 THEN u.until END, u.place
            FROM unnest(l_slot, h_amount, h_expires, h_state, h_place, h_changed)
              AS u(slot, amount, until, state, place, changed)
            WHERE u.slot = s AND u.changed
          ) x;
        ELSE
          extra := retry_at(l_bucket[k], l_account[k], debit + hold - available, false, units[i], zones[i], moment);
        END IF;
      ELSIF status = 2 AND every IS NOT NULL AND amount <= allowed THEN
        extra := filled_until(s_refilled[s], amount - standing, every);
      END IF;
      IF status = 2 AND apart > 0 THEN extra := concat(extra, '/', apart); END IF;
      statuses[k] := status;
      extras[k] := extra;
      l_flow[k] := CASE WHEN every IS NOT NULL THEN flow END;
      shown[k] := CASE WHEN every IS NOT NULL THEN 0
        WHEN status = 0 AND kind <> 6 AND NOT quiet THEN s_allowance[s] ELSE allowed END;
      refused := refused OR status > 1;
    END LOOP;

    repeated := repeated AND NOT refused AND last > first;
    IF refused OR repeated THEN
      -- All or nothing: as it was before.
      IF last > first THEN
        s_credited := was_credited; s_debited := was_debited; s_held := was_held;
        s_allowance := was_allowance; s_seq := was_seq; s_moved := was_moved; s_due := was_due;
        s_refilled := was_refilled;
        h_state := was_state; h_settled := was_settled; h_seq := was_ended_seq; h_ended := was_ended;
        h_expires := was_expires; h_changed := was_changed;
      END IF;
      m := was_m;
      wanted := was_wanted;
      FOR k IN first..last LOOP
        IF repeated THEN statuses[k] := 1; ELSIF statuses[k] = 0 THEN statuses[k] := 9; END IF;
        -- What a refused rate limit would have been refilled with is not in the balance.
        shown[k] := coalesce(l_flow[k], shown[k]);
      END LOOP;
    ELSE
      FOR g IN was_m + 1..m LOOP
        s := m_slot[g];
        k := m_line[g];
        i := l_ord[k];
        l_moved[k] := g;
        lapsed := 0;
        rest := amounts[i];
        available := m_credited[g] - m_debited[g] - m_held[g];
        -- What lapsed by lines before it is booked behind them all, and is gone from the grants already.
        FOR j IN was_m + 1..m LOOP
          IF m_slot[j] = s AND NOT m_main[j] THEN available := available - m_debit[j]; END IF;
        END LOOP;
        IF m_kind[g] = 7 THEN
          available := available - rest;
          -- To each line of the operation on this account what it took, until all is given back.
          FOR past IN
            SELECT * FROM returnable(coalesce(home_buckets[i], buckets[i]), owners[i], refs[i]::uuid,
              s_bucket[s], s_account[s])
          LOOP
            share := least(rest, past.rest);
            CONTINUE WHEN share = 0;
            UPDATE operation o SET returned = o.returned + share WHERE o.ctid = past.place;
            rest := rest - share;
            available := available + share;
            IF s_granted[s] THEN
              gone := move_grants(s_bucket[s], s_account[s], 7::smallint, m_seq[g], 0, share, 0, NULL,
                past.seq, ids[i], operation_ids[i], share, NULL, notes[i]::jsonb, moment, available, NULL);
              lapsed := lapsed + gone;
              available := available - gone;
            END IF;
          END LOOP;
        ELSIF s_granted[s] OR m_kind[g] = 8 THEN
          lapsed := move_grants(s_bucket[s], s_account[s], m_kind[g], m_seq[g], m_debit[g],
            m_credit[g], m_hold[g], h_made[h_at[k]], NULL,
            CASE m_kind[g] WHEN 10 THEN refs[i]::uuid WHEN 8 THEN l_grant[k] ELSE ids[i] END,
            coalesce(operation_ids[i], h_operation[k]),
            amounts[i], terms[i]::jsonb, notes[i]::jsonb, moment, available, l_feature[k]);
          s_granted[s] := true;
        END IF;
        IF lapsed > 0 THEN
          m := m + 1;
          s_debited[s] := s_debited[s] + lapsed;
          s_seq[s] := s_seq[s] + 1;
          m_line[m] := k; m_slot[m] := s; m_kind[m] := 9; m_seq[m] := s_seq[s];
          m_credit[m] := 0; m_debit[m] := lapsed; m_hold[m] := 0;
          m_credited[m] := s_credited[s]; m_debited[m] := s_debited[s]; m_held[m] := s_held[s];
          m_allowance[m] := s_allowance[s]; m_main[m] := false;
        END IF;
      END LOOP;
    END IF;
    FOR k IN first..last LOOP
      s := l_slot[k];
      IF statuses[k] = 1 AND l_hold[k] IS NOT NULL THEN
        SELECT concat_ws(',', l_ord[k], 1, v.seq, v.credited, v.debited, v.held, v.allowance,
          micros(v.at))
        INTO extra
        FROM movement v
        WHERE v.bucket = s_bucket[s] AND v.account = s_account[s] AND v.at = h_ended[h_at[k]]
          AND v.seq BETWEEN h_seq[h_at[k]] AND h_seq[h_at[k]] + 1
          AND (v.seq = h_seq[h_at[k]]
            OR v.seq = h_seq[h_at[k]] + 1 AND v.kind = 9 AND v.hold_id = l_hold[k])
        ORDER BY v.seq DESC
        LIMIT 1;
        -- Or it ended in this very call, and is not written yet.
        FOR g IN REVERSE m..1 LOOP
          EXIT WHEN extra IS NOT NULL;
          IF m_slot[g] = s AND (m_seq[g] = h_seq[h_at[k]] OR m_seq[g] = h_seq[h_at[k]] + 1
            AND m_kind[g] = 9 AND l_hold[m_line[g]] = l_hold[k]) THEN
            extra := concat_ws(',', l_ord[k], 1, m_seq[g], m_credited[g], m_debited[g], m_held[g],
              m_allowance[g], micros(s_moved[s]));
          END IF;
        END LOOP;
        answers[k] := extra;
        CONTINUE;
      END IF;
      -- As its own movement left the account, which is what a repetition will be told.
      g := l_moved[k];
      -- With what lapsed right after it, as replay() finds it.
      FOR i IN coalesce(g, m) + 1..m LOOP
        IF m_slot[i] = s AND m_seq[i] = m_seq[g] + 1 AND NOT m_main[i] THEN g := i; EXIT; END IF;
      END LOOP;
      answers[k] := concat_ws(',', l_ord[k], statuses[k], coalesce(m_seq[g], s_seq[s], 0),
        coalesce(m_credited[g], s_credited[s], 0), coalesce(m_debited[g], s_debited[s], 0),
        coalesce(m_held[g], s_held[s], 0), coalesce(shown[k], 0),
        coalesce(micros(s_moved[s]), 0), extras[k]);
    END LOOP;
    IF refused AND flags[l_ord[first]] & 128 <> 0 AND ids[l_ord[first]] IS NOT NULL THEN
      INSERT INTO operation (bucket, owner, id, line, kind, account, amount, at, refused_until, refusal)
      SELECT coalesce(home_buckets[x.i], buckets[x.i]), owners[x.i], ids[x.i], x.line - 1, kinds[x.i],
        x.account, amounts[x.i], moment, moment + ttls_ms[x.i] * interval '1 millisecond', x.answer
      FROM unnest(l_ord[first:last], l_account[first:last], answers[first:last])
        WITH ORDINALITY AS x(i, account, answer, line)
      ON CONFLICT DO NOTHING;
    END IF;
    first := last + 1;
  END LOOP;

  -- 6. Writes.
  IF m > 0 THEN
    IF wanted > 0 THEN
      -- Where less was taken than was asked for, that is kept as what a refusal would have said.
      INSERT INTO operation (bucket, owner, id, line, kind, account, amount, refusal, seq, at, ref)
      SELECT coalesce(home_buckets[x.i], buckets[x.i]), owners[x.i], ids[x.i], x.line, kinds[x.i],
        s_account[x.slot], x.amount, nullif(amounts[x.i], x.amount), x.seq, s_moved[x.slot],
        CASE WHEN kinds[x.i] IN (7, 10) THEN refs[x.i]::uuid END
      FROM (
        SELECT l_ord[u.line] AS i, u.op_line AS line, u.slot, u.seq, u.amount
        FROM unnest(m_line, m_op_line, m_slot, m_kind, m_seq, m_main, m_amount)
          WITH ORDINALITY AS u(line, op_line, slot, kind, seq, main, amount, ord)
        -- Behind m are leftovers of operations that were refused.
        WHERE u.ord <= m AND u.main AND u.kind NOT IN (4, 5)
      ) x;
    END IF;
    WITH changed AS (
      UPDATE balance b
      SET credited = u.credited, debited = u.debited, held = u.held, allowance = u.allowance,
        seq = u.seq, moved_at = u.moved_at, due_at = u.due_at, refilled_at = u.refilled_at,
        granted = u.granted
      FROM unnest(s_place, s_credited, s_debited, s_held, s_allowance, s_seq, s_before,
          s_moved, s_due, s_refilled, s_granted)
        AS u(place, credited, debited, held, allowance, seq, before, moved_at, due_at, refilled_at,
          granted)
      WHERE b.ctid = u.place AND u.seq <> u.before
    )
    INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited,
      held, allowance, operation_id, hold_id, grant_id, note)
    SELECT s_bucket[u.slot],
      CASE WHEN u.main AND kinds[l_ord[u.line]] IN (15, 16) THEN kinds[l_ord[u.line]] ELSE u.kind END,
      s_account[u.slot], u.seq, s_moved[u.slot], u.credit, u.debit, u.hold,
      u.credited, u.debited, u.held, u.allowance,
      coalesce(operation_ids[l_ord[u.line]], h_operation[u.line]),
      CASE WHEN u.kind = 3 THEN refs[l_ord[u.line]]::uuid ELSE l_hold[u.line] END,
      CASE u.kind WHEN 8 THEN l_grant[u.line] WHEN 10 THEN refs[l_ord[u.line]]::uuid END,
      notes[l_ord[u.line]]::jsonb
    FROM unnest(m_line, m_slot, m_kind, m_seq, m_credit, m_debit, m_hold, m_credited,
        m_debited, m_held, m_allowance, m_main)
      AS u(line, slot, kind, seq, credit, debit, hold, credited, debited, held, allowance, main)
    LIMIT m;
  END IF;
  IF any_new_hold THEN
    INSERT INTO hold (bucket, id, account, amount, expires_at, made_seq, operation_id)
    SELECT s_bucket[u.slot], refs[l_ord[u.line]]::uuid, s_account[u.slot], u.hold, u.until, u.seq,
      operation_ids[l_ord[u.line]]
    FROM unnest(m_line, m_slot, m_kind, m_hold, m_until, m_seq)
      WITH ORDINALITY AS u(line, slot, kind, hold, until, seq, ord)
    WHERE u.kind = 3 AND u.ord <= m;
  END IF;
  IF any_ended THEN
    UPDATE hold h
    SET state = u.state, settled = u.settled, seq = u.seq, ended_at = u.ended_at,
      expires_at = u.expires_at
    FROM unnest(h_place, h_state, h_settled, h_seq, h_ended, h_expires, h_changed)
      AS u(place, state, settled, seq, ended_at, expires_at, changed)
    WHERE h.ctid = u.place AND u.changed;
  END IF;
  -- Locks make the commit wait for the standby; an answer that took none has to see to it.
  IF expected = 0 AND true = ANY (l_known) THEN PERFORM wait_for_standby(); END IF;
  RETURN array_to_string(answers, E'\n');
END
$$;
