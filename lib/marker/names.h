/*
 * In a static program all names are in one space: what the rooms that this library shares with kymo call without a
 * prefix gets one here. Included before all else (meson.build).
 */
#define clock_describe kymo_record_clock_describe
#define clock_sample kymo_record_clock_sample
#define clock_settle kymo_record_clock_settle
#define clock_tsc kymo_record_clock_tsc
#define command_join kymo_record_command_join
#define command_of kymo_record_command_of
#define directory_check kymo_record_directory_check
#define directory_make kymo_record_directory_make
#define directory_name kymo_record_directory_name
#define marker_make_names kymo_record_make_names
#define marker_parse_format kymo_record_parse_format
#define output_deinit kymo_record_output_deinit
#define output_drain kymo_record_output_drain
#define output_finish kymo_record_output_finish
#define output_index_events kymo_record_output_index_events
#define output_init kymo_record_output_init
#define output_metadata kymo_record_output_metadata
#define output_restart kymo_record_output_restart
