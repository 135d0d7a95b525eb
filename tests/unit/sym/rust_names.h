/*
 * Names by rustc 1.95 (RFC 2603) and 1.63 (the older mangling), each with what binutils' c++filt makes of it, without
 * hashes and types of constants.
 */
{ "_RINvCs6xxl1lAjzDf_1a3genAhj3_EB2_", "a::gen::<[u8; 3]>" },
	{ "_RINvCs6xxl1lAjzDf_1a3genINtNtCslNYArtu3iFV_5alloc5boxed3BoxDNtNtCsgEmfK2I1SDS_4core3fmt5DebugNtNtB10_"
	  "6marker4SendEL_EEB2_",
	  "a::gen::<alloc::boxed::Box<dyn core::fmt::Debug + core::marker::Send>>" },
	{ "_RINvCs6xxl1lAjzDf_1a3genRSINtNtCsgEmfK2I1SDS_4core6option6OptionINtNtBt_6result6ResulthuEEEB2_",
	  "a::gen::<&[core::option::Option<core::result::Result<u8, ()>>]>" },
	{ "_RINvCs6xxl1lAjzDf_1a3genTaEEB2_", "a::gen::<(i8,)>" },
	{ "_RINvCs6xxl1lAjzDf_1a3genlEB2_", "a::gen::<i32>" },
	{ "_RINvCs6xxl1lAjzDf_1a4callNCNvB2_4mains_0EB2_", "a::call::<a::main::{closure#1}>" },
	{ "_RNvCs6xxl1lAjzDf_1a2cc", "a::cc" }, { "_RNvCs6xxl1lAjzDf_1a4main", "a::main" },
	{ "_RNvMNtCs6xxl1lAjzDf_1a4shopNtB2_4Cart3add", "<a::shop::Cart>::add" },
	{ "_RNvMNtCs6xxl1lAjzDf_1a4shopNtB2_4Cart5total", "<a::shop::Cart>::total" },
	{ "_RNvMs0_Cs6xxl1lAjzDf_1aINtB5_2SqReE4showB5_", "<a::Sq<&str>>::show" },
	{ "_RNvNtCs6xxl1lAjzDf_1a4shopu9gre_6ka8i", "a::shop::größe" },
	{ "_RNvYNCNvCs6xxl1lAjzDf_1a4mains2_0INtNtNtCsgEmfK2I1SDS_4core3ops8function6FnOnceuE9call_onceB6_",
	  "<a::main::{closure#4} as core::ops::function::FnOnce<()>>::call_once" },
	{ "_RNvXs0_NtCsgEmfK2I1SDS_4core3anyDNtB5_3AnyNtNtB7_6marker4SendEL_NtNtB7_3fmt5Debug3fmt",
	  "<dyn core::any::Any + core::marker::Send as core::fmt::Debug>::fmt" },
	{ "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtNtCslNYArtu3iFV_5alloc3vec9into_iter8IntoIterINtNtBN_"
	  "5boxed3BoxDINtNtNtB4_3ops8function6FnOnceuEp6OutputuNtNtB4_6marker4SendEL_EEECsjrHSEGnQ3l9_3std",
	  "core::ptr::drop_in_place::<alloc::vec::into_iter::IntoIter<alloc::boxed::Box<dyn "
	  "core::ops::function::FnOnce<(), Output = ()> + core::marker::Send>>>" },
	{ "_RNvXs1j_NtCsgEmfK2I1SDS_4core3fmtQDNtNtB8_5panic12PanicPayloadEL_NtB6_7Display3fmtCsjrHSEGnQ3l9_3std",
	  "<&mut dyn core::panic::PanicPayload as core::fmt::Display>::fmt" },
	{ "_RNSNvYNCINvMs0_NtNtCsjrHSEGnQ3l9_3std4sync4onceNtBd_4Once9call_onceNCNvNtBh_"
	  "2rt7cleanup0E0INtNtNtCsgEmfK2I1SDS_4core3ops8function6FnOnceTRNtBd_9OnceStateEE9call_once6vtableBh_",
	  "<<std::sync::once::Once>::call_once<std::rt::cleanup::{closure#0}>::{closure#0} as "
	  "core::ops::function::FnOnce<(&std::sync::once::OnceState,)>>::call_once::{shim:vtable#0}" },
	{ "_RNvXsa_NtCsgEmfK2I1SDS_4core5arrayAhj3_NtNtB7_3fmt5Debug3fmtCs6xxl1lAjzDf_1a",
	  "<[u8; 3] as core::fmt::Debug>::fmt" },
	{ "_RNvXs1g_NtCsgEmfK2I1SDS_4core3fmtRINtNtCslNYArtu3iFV_5alloc5boxed3BoxDNtNtB8_5error5ErrorNtNtB8_"
	  "6marker4SyncNtB1r_4SendEL_ENtB6_5Debug3fmtCsjrHSEGnQ3l9_3std",
	  "<&alloc::boxed::Box<dyn core::error::Error + core::marker::Sync + core::marker::Send> as "
	  "core::fmt::Debug>::fmt" },
	{ "_RNvXsn_NtCslNYArtu3iFV_5alloc5boxedINtB5_3BoxDNtNtCsgEmfK2I1SDS_4core3fmt5DebugNtNtBM_6marker4SendEL_EBI_"
	  "3fmtCs6xxl1lAjzDf_1a",
	  "<alloc::boxed::Box<dyn core::fmt::Debug + core::marker::Send> as core::fmt::Debug>::fmt" },
	{ "_RNvXs1_NtCsgEmfK2I1SDS_4core3anyDNtB5_3AnyNtNtB7_6marker4SyncNtBG_4SendEL_NtNtB7_3fmt5Debug3fmt",
	  "<dyn core::any::Any + core::marker::Sync + core::marker::Send as core::fmt::Debug>::fmt" },
	{ "_RNvXsh_NtCsgEmfK2I1SDS_4core3fmteNtB5_5Debug3fmt", "<str as core::fmt::Debug>::fmt" },
	{ "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtB4_6result6ResultuNtNtNtCsjrHSEGnQ3l9_"
	  "3std2io5error5ErrorEECs6xxl1lAjzDf_1a.llvm.16765408412744192363",
	  "core::ptr::drop_in_place::<core::result::Result<(), std::io::error::Error>>" },
	{ "_RNvXs1h_NtCsgEmfK2I1SDS_4core3fmtQShNtB6_5Debug3fmtCsgY6Mt91CT9J_14rustc_demangle",
	  "<&mut [u8] as core::fmt::Debug>::fmt" },
	{ "_RNvMs_NtNtNtNtCsjrHSEGnQ3l9_3std12backtrace_rs9symbolize5gimli3elfNtB4_6Object13search_symtab",
	  "<std::backtrace_rs::symbolize::gimli::elf::Object>::search_symtab" },
	{ "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNvNtCsjrHSEGnQ3l9_3std2io17default_write_fmt7AdapterINtNtBL_"
	  "6cursor6CursorQShEEEBN_",
	  "core::ptr::drop_in_place::<std::io::default_write_fmt::Adapter<std::io::cursor::Cursor<&mut [u8]>>>" },
	{ "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std12backtrace_rs9symbolize5gimli3elfNtB4_7Mapping18load_dwarf_package",
	  "<std::backtrace_rs::symbolize::gimli::Mapping>::load_dwarf_package" },
	{ "_RNCNvMNtCs4X4t9plMPHF_9addr2line4unitINtB4_7ResUnitINtNtNtCsduwmD7cSIQq_5gimli4read12endian_"
	  "slice11EndianSliceNtNtBU_9endianity12LittleEndianEE25find_function_or_location0CsjrHSEGnQ3l9_3std",
	  "<addr2line::unit::ResUnit<gimli::read::endian_slice::EndianSlice<gimli::endianity::LittleEndian>>>::find_"
	  "function_or_location::{closure#0}" },
	{ "_RNvNtNtNtNtCsgEmfK2I1SDS_4core3num7flt2dec8strategy6dragon15format_shortest",
	  "core::num::flt2dec::strategy::dragon::format_shortest" },
	{ "_RNvXs1i_NtCsgEmfK2I1SDS_4core3fmtReNtB6_7Display3fmtCsjrHSEGnQ3l9_3std",
	  "<&str as core::fmt::Display>::fmt" },
	{ "_RNvMs_NtNtNtCsjrHSEGnQ3l9_3std12backtrace_rs9symbolize5gimliNtB4_7Context3new",
	  "<std::backtrace_rs::symbolize::gimli::Context>::new" },
	{ "_ZN68_$LT$$RF$$u5b$u8$u5d$$u20$as$u20$object..read..read_ref..ReadRef$GT$3len17h44ea33d924fe384dE",
	  "<&[u8] as object::read::read_ref::ReadRef>::len" },
	{ "_ZN86_$LT$$LP$std..net..ip..Ipv6Addr$C$u16$RP$$u20$as$u20$std..net..addr..ToSocketAddrs$GT$15to_socket_"
	  "addrs17h85dfb40cbd1c0c9eE",
	  "<(std::net::ip::Ipv6Addr,u16) as std::net::addr::ToSocketAddrs>::to_socket_addrs" },
	{ "_ZN4core3ptr9const_ptr33_$LT$impl$u20$$BP$const$u20$T$GT$7sub_ptr8comptime17h7aff9667c56d67b3E",
	  "core::ptr::const_ptr::<impl *const T>::sub_ptr::comptime" },
	{ "_ZN4core5slice5ascii30_$LT$impl$u20$$u5b$u8$u5d$$GT$16trim_ascii_start17h3f04815fffe0f0a2E",
	  "core::slice::ascii::<impl [u8]>::trim_ascii_start" },
	{ "_ZN104_$LT$std..sys_common..net..LookupHost$u20$as$u20$core..convert..TryFrom$LT$$LP$$RF$str$C$u16$RP$$GT$$"
	  "GT$8try_from17hffc22c9180518223E",
	  "<std::sys_common::net::LookupHost as core::convert::TryFrom<(&str,u16)>>::try_from" },
	{ "_ZN4core5slice5ascii30_$LT$impl$u20$$u5b$u8$u5d$$GT$12escape_ascii17hc440647766e8d11fE",
	  "core::slice::ascii::<impl [u8]>::escape_ascii" },
	{ "_ZN75_$LT$usize$u20$as$u20$core..slice..index..SliceIndex$LT$$u5b$T$u5d$$GT$$GT$13get_"
	  "unchecked8comptime17h05cb02bacf22432aE",
	  "<usize as core::slice::index::SliceIndex<[T]>>::get_unchecked::comptime" },
	{ "_ZN5alloc11collections9vec_deque21VecDeque$LT$T$C$A$GT$9wrap_copy4diff17ha2e1b76355decdb0E",
	  "alloc::collections::vec_deque::VecDeque<T,A>::wrap_copy::diff" },
	{ "_ZN3std5error115_$LT$impl$u20$core..convert..From$LT$$RF$str$GT$$u20$for$u20$alloc..boxed..Box$LT$dyn$u20$"
	  "std..error..Error$GT$$GT$4from17h4615fab2a75e0878E",
	  "std::error::<impl core::convert::From<&str> for alloc::boxed::Box<dyn std::error::Error>>::from" },
	{ "_ZN63_$LT$object..pe..ImageDosHeader$u20$as$u20$core..fmt..Debug$GT$3fmt17h198cb26c4b666d38E",
	  "<object::pe::ImageDosHeader as core::fmt::Debug>::fmt" },
	{ "_ZN49_$LT$u8$u20$as$u20$core..fmt..num..DisplayInt$GT$6to_u1617h929bb3784c0a4dbdE",
	  "<u8 as core::fmt::num::DisplayInt>::to_u16" },
	{ "_ZN3std2os4unix3net9ancillary10SocketCred7get_gid17h91ea5f7cca8eb1eeE",
	  "std::os::unix::net::ancillary::SocketCred::get_gid" },
	{ "_ZN3std6thread5sleep17h5894ef2d541bc80bE", "std::thread::sleep" },
	{ "_ZN90_$LT$std..fs..File$u20$as$u20$std..sys_common..AsInner$LT$std..sys..unix..fs..File$GT$$GT$8as_"
	  "inner17hcf0980f86688da11E",
	  "<std::fs::File as std::sys_common::AsInner<std::sys::unix::fs::File>>::as_inner" },
	{ "_ZN90_$LT$libc..unix..linux_like..linux..pthread_rwlockattr_t$u20$as$u20$core..clone..Clone$GT$"
	  "5clone17h5e61b2fc56aa9f28E",
	  "<libc::unix::linux_like::linux::pthread_rwlockattr_t as core::clone::Clone>::clone" },
	/* Forms that rustc's tests have (RFC 2603). */
	{ "_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3new", "<std::path::PathBuf>::new" },
	{ "_RNvXNtC7mycrate3fooppNtB2_3Foo", NULL }, { "_RC3foo", "foo" }, { "_RC3foo.llvm.9D1C9369", "foo" },
	{ "_RC3foo.cold", "foo [clone .cold]" },
	{ "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
	  "utf8_idents::საჭმელად_გემრიელი_სადილი" },
	{ "_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}" },
	{ "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_"
	  "6memchr7memrchrs_0E0Cs5HG6eU1nNUs_6memchr",
	  "<core::slice::Iter<u8> as "
	  "core::iter::iterator::Iterator>::rposition::<core::slice::memchr::memrchr::{closure#1}>::{closure#0}" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E", "<const_generic::Unsigned<11>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKs98_E", "<const_generic::Signed<152>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKanb_E", "<const_generic::Signed<-11>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb0_E", "<const_generic::Bool<false>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc76_E", "<const_generic::Char<'v'>>" },
	{ "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc2202_E", "<const_generic::Char<'∂'>>" },
	{ "_RNvNvMCs4fqI2P2rA04_13const_genericINtB4_3FooKpE3foo3FOO", "<const_generic::Foo<_>>::foo::FOO" },
	{ "_RMC0INtC8arrayvec8ArrayVechKj7b_E", "<arrayvec::ArrayVec<u8, 123>>" }, { "_RYFG_FGRL1_hRL0_hEuEp", NULL },
	{ "_RINxC3foo3barFG_RL0_hERL0_hE", "foo::bar::<for<'a> fn(&'a u8) -> &'a u8>" },
	{ "_RINxC3foo3barDG_INtC1a2FnTRL0_hEEp6OutputuEL_E", "foo::bar::<dyn for<'a> a::Fn<(&'a u8,), Output = ()>>" },
	{ "_RINxC3foo3barFUKCPhOtEzE", "foo::bar::<unsafe extern \"C\" fn(*const u8, *mut u16) -> !>" },
	{ "_RINxC3foo3barAhj4_SeTEE", "foo::bar::<[u8; 4], [str], ()>" },
