//! The list of the tests, and how they become tests of one format.

/// Makes tests of one format out of functions.
macro_rules! suite {
    ($format:ident, $make:path, { $($module:ident: [$($test:ident),* $(,)?]),* $(,)? }) => {
        mod $format {
            $(mod $module {
                $(#[test]
                fn $test() {
                    crate::$module::$test(&$make());
                })*
            })*
        }
    };
}

/// What every format does: `contract!(native, make_native)`.
macro_rules! contract {
    ($format:ident, $make:path) => {
        suite!($format, $make, {
            accounts: [make_list_remove, one_object, reopen_keeps_everything, one_process],
            care: [restore, restore_mailbox, check_and_repair, stats],
            mailboxes: [create_with_parents, delete_keeps_children, recreate, rename, rename_inbox, rename_name_only,
                subscribe, limits],
            entries: [append_and_read, append_is_all_or_nothing, too_large, flags, conditional_store, keywords_map,
                copy_and_move, replace, expunge, vanished, status, derived_data, listeners],
            quotas: [what_counts, at_the_limit_and_one_over, many_at_once, what_is_never_refused],
            views: [stable_until_advanced, ghosts_keep_numbers, ghosts_random, deleted_mailbox, recent, rows_and_sets],
        });
    };
}
